//! Chapter 4: one default changes, the other is taken back.

use std::io::Write;

use anyhow::Result;

use super::{KINDS, cell, roll_out, row, show_release};
use crate::demo::cast::{ACTORS, CRONTABS, Kind, LATECOMER, Role};
use crate::demo::claims::{Claim, named, not_held, not_shown, written_since};
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;
use crate::demo::view::{Snapshot, View};

pub(super) async fn tell<W: Write>(stage: &Stage, screen: &mut Screen<W>, before: &Snapshot) -> Result<()> {
    screen.chapter("The next release: one default is taken back, another one changes")?;
    for kind in KINDS {
        roll_out(stage, kind, 2).await?;
    }
    stage.write(&LATECOMER).await?;
    // The claims have to hold after Etch has processed the change, too. Without defaults there is nothing to
    // process.
    let wording = stage.persisted(&CRONTABS).await;
    let mut everyone = ACTORS.to_vec();
    everyone.push(LATECOMER);
    let seen = stage.look(&everyone).await?;
    for kind in KINDS {
        show_release(screen, kind, 2)?;
        let views: Vec<&View> = seen.views.iter().filter(|view| view.actor.kind == kind).collect();
        show_change(screen, &views, before)?;
        for view in views {
            screen.claim(judge(kind, view, before)?)?;
        }
        screen.blank()?;
    }
    let text = "the 4 that Etch had stored: not a byte and no resourceVersion has changed since";
    screen.claim(Claim::since(text, seen.kept(), before, written_since))?;
    let text = format!("{}: DefaultsPersisted is True, for the changed default", CRONTABS.crd_name());
    screen.claim(Claim::that(text, wording.err().map(|error| format!("{error:#}"))))?;
    Ok(())
}

/// The field in question before and now, for all objects of a kind.
fn show_change<W: Write>(screen: &mut Screen<W>, views: &[&View], before: &Snapshot) -> Result<()> {
    let mut rows = vec![row(["OBJECT", "API BEFORE", "API NOW", "ETCD NOW", ""])];
    for view in views {
        let field = view.actor.kind.choice;
        let earlier = before.of(&view.actor).ok().and_then(|before| before.shown(field));
        let [earlier, shown, held] = [earlier, view.shown(field), view.held(field)].map(cell);
        let comment = match view.actor.role {
            Role::Stored => "stored by Etch: kept",
            Role::Chosen => "its user's own: kept",
            Role::Ignored => "never stored: changed",
            Role::New => "created just now",
        };
        rows.push(row([&view.actor.to_string(), &earlier, &shown, &held, comment]));
    }
    let mut lines = table(&rows);
    for (line, view) in lines.iter_mut().skip(1).zip(views) {
        if view.actor.role == Role::Ignored {
            *line = screen.style().phantom(line);
        }
    }
    Ok(screen.block(&lines)?)
}

/// What has to hold of an object after the change.
fn judge(kind: &Kind, view: &View, before: &Snapshot) -> Result<Claim> {
    let (actor, field) = (&view.actor, kind.choice);
    let crd = kind.crd(&kind.releases[2])?;
    let default = field.default_in(&crd);
    if actor.role == Role::New {
        let text = format!("{actor}: shows and holds the new {}", named(default));
        return Ok(Claim::about(text, [view], |view| not_held(view, field, default)));
    }
    let earlier = before.of(actor)?.shown(field);
    Ok(match actor.role {
        Role::Ignored => {
            let text = format!(
                "{actor}: not written by anyone, and yet {} has become {}",
                named(earlier),
                named(default)
            );
            Claim::since(text, [view], before, |now, before| {
                written_since(now, before).or_else(|| not_shown(now, field, default))
            })
        }
        _ => {
            let text = format!("{actor}: shows and holds the {} it had", named(earlier));
            Claim::about(text, [view], |view| not_held(view, field, earlier))
        }
    })
}
