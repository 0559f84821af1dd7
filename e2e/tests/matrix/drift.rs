//! Some worlds, observed again: what is kept is what the server does.

use std::io::Write as _;

use anyhow::{Context, Result, bail};
use e2e::environment::number;
use e2e::matrix::{Data, Observer, Parts, World};
use futures::stream::{self, StreamExt};

/// How many worlds are observed.
const SHARE: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn servers_do_what_is_kept() -> Result<()> {
    let seed = number("MATRIX_SEED")?.unwrap_or_else(|| fastrand::u64(..));
    writeln!(std::io::stderr(), "MATRIX_SEED={seed}")?;
    let observer = Observer::start(None).await?;
    let release = observer.kubernetes().to_string();
    let kept = Data::read(&release)?;
    let mut worlds = World::all();
    fastrand::Rng::with_seed(seed).shuffle(&mut worlds);
    let of = &observer;
    let mut observed = stream::iter(worlds.into_iter().take(SHARE))
        .map(|world| async move { (world, of.observe(world).await) })
        .buffer_unordered(SHARE);
    let (mut differing, mut count) = (Vec::new(), 0);
    while let Some((world, result)) = observed.next().await {
        let (outcomes, parts) = result?;
        let known = kept.outcomes.get(&world).with_context(|| format!("no {world} is kept"))?;
        for (cell, outcome) in &outcomes {
            count += 1;
            if known.get(cell) != Some(outcome) {
                let known = known.get(cell).map(|known| format!("{known:#?}")).unwrap_or_default();
                differing
                    .push(format!("{world}: {cell}: {}", first_difference(&known, &format!("{outcome:#?}"))));
            }
        }
        if known.len() != outcomes.len() {
            differing.push(format!("{world}: {} cells are kept, {} exist", known.len(), outcomes.len()));
        }
        let Parts(parts) = parts;
        differing.extend(
            parts.keys().filter(|id| !kept.parts.0.contains_key(*id)).map(|id| format!("{world}: part {id}")),
        );
    }
    if !differing.is_empty() {
        let shown: Vec<&str> = differing.iter().take(20).map(String::as_str).collect();
        bail!(
            "{} of {count} cells are not as they are kept; run `just matrix --kubernetes {release}`\n{}",
            differing.len(),
            shown.join("\n")
        );
    }
    Ok(())
}

fn first_difference(kept: &str, observed: &str) -> String {
    let mut lines = kept.lines().zip(observed.lines()).filter(|(kept, observed)| kept != observed);
    let (kept, observed) = lines.next().unwrap_or_default();
    format!("kept {:?}, observed {:?}", kept.trim(), observed.trim())
}
