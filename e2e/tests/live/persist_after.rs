//! `etch persist --after`: nothing is claimed of what was left out.

use anyhow::{Result, ensure};

use crate::hand::Hand;

/// More than a page.
const OBJECTS: usize = 520;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_is_counted_and_nothing_is_claimed_of_it() -> Result<()> {
    let hand = Hand::with(&[("default", OBJECTS)]).await?;
    let before = hand.raw().await?;
    for wrong in ["Any Word", "t0490", "default/", "/t0490", "default/t/0", "default/T0490", ""] {
        for more in [&[][..], &["--dry-run"]] {
            let reported = hand.refused(&[&["persist", "things", "--after", wrong], more].concat())?;
            ensure!(reported.contains("not a valid object name"), "{wrong:?}: {reported}");
        }
    }
    let behind = ["persist", "things", "--after", "default/t0490"];
    let plan = hand.etch(&[&behind[..], &["--dry-run", "-o", "json"]].concat())?;
    let reported = plan.first()?;
    ensure!(plan.code == Some(1), "{plan:?}");
    ensure!(
        reported["objects"] == 29 && reported["due"] == 29 && reported["notLookedAt"] == 491,
        "{reported:#}"
    );
    let first = &reported["plans"][0]["name"];
    ensure!(
        first == "t0491" && reported["plans"].as_array().is_some_and(|plans| plans.len() == 29),
        "{reported:#}"
    );
    ensure!(hand.raw().await? == before, "something was written");

    // An object that is gone meanwhile leaves its place.
    let gone = hand.etch(&["persist", "things", "--after", "default/t0514-gone", "-o", "json"])?;
    ensure!(gone.code == Some(1) && gone.err.contains("no such object"), "{gone:?}");
    let reported = gone.first()?;
    ensure!(reported["written"] == 5 && reported["notLookedAt"] == 515, "{reported:#}");
    ensure!(reported["verified"] == false && reported["alreadyStored"] == 0, "{reported:#}");

    let rest = hand.etch(&[&behind[..], &["-o", "json"]].concat())?;
    let reported = rest.first()?;
    ensure!(rest.code == Some(1) && !rest.err.contains("no such object"), "{rest:?}");
    ensure!(
        reported["objects"] == 29 && reported["written"] == 24 && reported["alreadyStored"] == 5,
        "{reported:#}"
    );
    ensure!(reported["notLookedAt"] == 491 && reported["verified"] == false, "{reported:#}");
    let stored = hand.stored().await?;
    let expected: Vec<String> = (491..OBJECTS).map(|index| format!("default/t{index:04}")).collect();
    ensure!(stored == expected, "{} are stored, from {:?}", stored.len(), stored.first());
    let printed = hand.etch(&behind)?;
    ensure!(printed.code == Some(1), "{printed:?}");
    ensure!(printed.out.contains("491 up to default/t0490 not checked"), "{printed:?}");
    ensure!(printed.out.contains("29 objects of 1 CRD: 29 already stored; 491 not checked."), "{printed:?}");

    let all = hand.etch(&["persist", "things", "-o", "json"])?;
    let reported = all.first()?;
    ensure!(all.code == Some(0), "{all:?}");
    ensure!(
        reported["objects"] == OBJECTS && reported["notLookedAt"] == 0 && reported["verified"] == true,
        "{reported:#}"
    );
    ensure!(hand.stored().await?.len() == OBJECTS);
    Ok(())
}
