//! Chapter 1: objects from before there were defaults.

use std::io::Write;

use anyhow::Result;

use super::{KINDS, row, show_release};
use crate::demo::cast::{ACTORS, Role};
use crate::demo::claims::{Claim, not_whole};
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;
use crate::demo::view::Snapshot;

pub(super) async fn tell<W: Write>(stage: &Stage, screen: &mut Screen<W>) -> Result<Snapshot> {
    screen.chapter("Yesterday: two CRDs without defaults, three objects of each")?;
    for kind in KINDS {
        show_release(screen, kind, 0)?;
        stage.roll_out(&kind.crd(&kind.releases[0])?).await?;
    }
    for actor in &ACTORS {
        stage.write(actor).await?;
    }
    let seen = stage.look(&ACTORS).await?;
    let mut rows = vec![row(["OBJECT", "RESOURCEVERSION", "GENERATION", "MANAGER", ""])];
    for view in &seen.views {
        let (revision, generation) =
            (view.revision.to_string(), view.generation().unwrap_or_default().to_string());
        let owners =
            view.owners().into_iter().map(|owner| format!("{} ({})", owner.manager, owner.operation));
        let owners = owners.collect::<Vec<_>>().join(", ");
        let note = if view.actor.role == Role::Ignored { "etch-operator.io/ignore: \"true\"" } else { "" };
        rows.push(row([&view.actor.to_string(), &revision, &generation, &owners, note]));
    }
    screen.block(&table(&rows))?;
    let text = "all 6: etcd holds, to the last field, what the API shows";
    screen.claim(Claim::about(text, &seen.views, not_whole))?;
    Ok(seen)
}
