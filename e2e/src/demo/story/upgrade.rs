//! Chapter 2: an upgrade adds defaults, and no client writes.

use std::io::Write;

use anyhow::Result;

use super::{KINDS, compare, roll_out, row, show_release};
use crate::demo::cast::{ACTORS, Role};
use crate::demo::claims::{Claim, not_phantom, written_since};
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;
use crate::demo::view::{Snapshot, key};

pub(super) async fn tell<W: Write>(
    stage: &Stage,
    screen: &mut Screen<W>,
    before: &Snapshot,
) -> Result<Snapshot> {
    screen.chapter("The upgrade: both CRDs gain two defaults, and no object is written")?;
    for kind in KINDS {
        show_release(screen, kind, 1)?;
        roll_out(stage, kind, 1).await?;
    }
    let seen = stage.look(&ACTORS).await?;
    let example = &ACTORS[0];
    screen.line(&format!("Both sides, {example} for example, are read from"))?;
    screen.block(&table(&[row(["API ", "GET", &example.path()]), row(["etcd", "key", &key(example)])]))?;
    compare(screen, seen.role(Role::Stored))?;
    for view in seen.role(Role::Stored) {
        let [one, other] = view.actor.kind.defaults;
        let text = format!("{}: the API shows {one} and {other}, etcd holds neither", view.actor);
        screen.claim(Claim::about(text, [view], |view| not_phantom(view, &[one, other])))?;
    }
    let text = "all 6: etcd holds the very bytes of before, and no resourceVersion has moved";
    screen.claim(Claim::since(text, &seen.views, before, written_since))?;
    Ok(seen)
}
