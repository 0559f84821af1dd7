//! Chapter 1: objects from before there were defaults.

use std::io::Write;

use anyhow::Result;

use super::{KINDS, row, show_files};
use crate::demo::cast::{ACTORS, Role};
use crate::demo::claims::{Claim, not_whole};
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;
use crate::demo::view::Snapshot;

pub(super) async fn tell<W: Write>(stage: &Stage, screen: &mut Screen<W>) -> Result<Snapshot> {
    screen.chapter("Yesterday: two CRDs without defaults, three objects of each")?;
    for kind in KINDS {
        stage.roll_out(&kind.crd(&kind.releases[0])?).await?;
    }
    for actor in &ACTORS {
        stage.write(actor).await?;
    }
    show_files(screen, &KINDS.map(|kind| (kind, 0)))?;
    screen.blank()?;
    let seen = stage.look(&ACTORS).await?;
    let mut rows = vec![row(["OBJECT", "RESOURCEVERSION", "GENERATION", "MANAGER", ""])];
    for view in &seen.views {
        let (revision, generation) =
            (view.revision.to_string(), view.generation().unwrap_or_default().to_string());
        let owners =
            view.owners().into_iter().map(|owner| format!("{} ({})", owner.manager, owner.operation));
        let owners = owners.collect::<Vec<_>>().join(", ");
        let note = if view.actor.role == Role::Ignored { "ignored" } else { "" };
        rows.push(row([&view.actor.to_string(), &revision, &generation, &owners, note]));
    }
    screen.block(&table(&rows))?;
    screen.say("Etch is told to ignore two of them, by the annotation etch-operator.io/ignore: \"true\".")?;
    let text = "all 6: etcd holds, to the last field, what the API shows";
    screen.claim(Claim::about(text, &seen.views, not_whole))?;
    Ok(seen)
}
