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
            let told = hand.refused(&[&["persist", "things", "--after", wrong], more].concat())?;
            ensure!(told.contains("not a valid object name"), "{wrong:?}: {told}");
        }
    }
    let behind = ["persist", "things", "--after", "default/t0490"];
    let plan = hand.etch(&[&behind[..], &["--dry-run", "-o", "json"]].concat())?;
    let told = plan.first()?;
    ensure!(plan.code == Some(1), "{plan:?}");
    ensure!(told["objects"] == 29 && told["due"] == 29 && told["notLookedAt"] == 491, "{told:#}");
    let first = &told["plans"][0]["name"];
    ensure!(first == "t0491" && told["plans"].as_array().is_some_and(|plans| plans.len() == 29), "{told:#}");
    ensure!(hand.raw().await? == before, "something was written");

    // An object that is gone meanwhile leaves its place.
    let gone = hand.etch(&["persist", "things", "--after", "default/t0514-gone", "-o", "json"])?;
    ensure!(gone.code == Some(1) && gone.err.contains("no such object"), "{gone:?}");
    let told = gone.first()?;
    ensure!(told["written"] == 5 && told["notLookedAt"] == 515, "{told:#}");
    ensure!(told["verified"] == false && told["alreadyStored"] == 0, "{told:#}");

    let rest = hand.etch(&[&behind[..], &["-o", "json"]].concat())?;
    let told = rest.first()?;
    ensure!(rest.code == Some(1) && !rest.err.contains("no such object"), "{rest:?}");
    ensure!(told["objects"] == 29 && told["written"] == 24 && told["alreadyStored"] == 5, "{told:#}");
    ensure!(told["notLookedAt"] == 491 && told["verified"] == false, "{told:#}");
    let stored = hand.stored().await?;
    let expected: Vec<String> = (491..OBJECTS).map(|index| format!("default/t{index:04}")).collect();
    ensure!(stored == expected, "{} are stored, from {:?}", stored.len(), stored.first());
    let printed = hand.etch(&behind)?;
    ensure!(printed.code == Some(1), "{printed:?}");
    ensure!(printed.out.contains("491 up to default/t0490 not checked"), "{printed:?}");
    ensure!(printed.out.contains("29 objects of 1 CRD: 29 already stored; 491 not checked."), "{printed:?}");

    let all = hand.etch(&["persist", "things", "-o", "json"])?;
    let told = all.first()?;
    ensure!(all.code == Some(0), "{all:?}");
    ensure!(told["objects"] == OBJECTS && told["notLookedAt"] == 0 && told["verified"] == true, "{told:#}");
    ensure!(hand.stored().await?.len() == OBJECTS);
    Ok(())
}
