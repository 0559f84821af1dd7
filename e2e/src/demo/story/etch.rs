//! Chapter 3: Etch has the defaults stored.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::{KINDS, compare, row};
use crate::demo::cast::{ACTORS, Role};
use crate::demo::claims::{Claim, named, not_held, not_whole, other_generation, other_owners, written_since};
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::{ActorApply, Stage};
use crate::demo::view::{Snapshot, View};
use crate::operator::Operator;

pub(super) async fn tell<W: Write>(
    stage: &Stage,
    screen: &mut Screen<W>,
    before: &Snapshot,
) -> Result<(Operator, Snapshot)> {
    screen.chapter("Etch: `etch run`, with get, list, watch and patch on these two groups")?;
    let begun = Instant::now();
    let operator = stage.start_etch()?;
    for kind in KINDS {
        let wording = stage.persisted(kind).await;
        let text = format!("{}: DefaultsPersisted is True, AllPersisted", kind.crd_name());
        screen.claim(Claim::that(text, wording.err().map(|error| format!("{error:#}"))))?;
    }
    screen.blank()?;
    screen.say(&format!("{:.1} s after it began. What its users see:", begun.elapsed().as_secs_f64()))?;
    show_words(stage, screen).await?;
    let seen = stage.look(&ACTORS).await?;
    compare(screen, seen.role(Role::Stored))?;
    judge(screen, &seen, before)?;
    for view in seen.role(Role::Stored) {
        screen.claim(free_to_apply(stage, view, &seen).await?)?;
    }
    let text = "audit log: of all that Etch sent, only patches of those 4 are writes to these objects";
    screen.claim(Claim::about(text, &seen.views, |view| other_writes(stage, view)))?;
    Ok((operator, seen))
}

/// The conditions and reports.
async fn show_words<W: Write>(stage: &Stage, screen: &mut Screen<W>) -> Result<()> {
    for kind in KINDS {
        screen
            .line(&screen.style().aside(&format!("kubectl get crd {}, its conditions", kind.crd_name())))?;
        let mut rows = vec![row(["TYPE", "STATUS", "REASON", "MESSAGE"])];
        rows.extend(stage.conditions(kind).await?);
        screen.block(&table(&rows))?;
    }
    screen.line(&screen.style().aside("kubectl get defaultsreports"))?;
    Ok(screen.block(&table(&stage.printed_reports(&KINDS).await?))?)
}

/// What has to hold of all objects.
fn judge<W: Write>(screen: &mut Screen<W>, seen: &Snapshot, before: &Snapshot) -> Result<()> {
    for view in seen.role(Role::Stored) {
        let [one, other] = view.actor.kind.defaults;
        let text = format!("{}: etcd holds the {one} and {other} that the API has shown", view.actor);
        screen.claim(Claim::since(text, [view], before, |now, before| {
            let held = |field| not_held(now, field, before.shown(field));
            held(one).or_else(|| held(other))
        }))?;
    }
    for view in seen.role(Role::Chosen) {
        let field = view.actor.kind.choice;
        let chosen = before.of(&view.actor)?.held(field);
        let text = format!("{}: {field} is still its user's {}", view.actor, named(chosen));
        screen.claim(Claim::about(text, [view], |view| not_held(view, field, chosen)))?;
    }
    let text = "these 4: etcd holds, to the last field, what the API shows";
    screen.claim(Claim::about(text, seen.kept(), not_whole))?;
    let text = "left-alone, both: etcd holds the very bytes of before, as the annotation asks";
    screen.claim(Claim::since(text, seen.role(Role::Ignored), before, written_since))?;
    let text = "all 6: metadata.generation has not moved";
    screen.claim(Claim::since(text, &seen.views, before, other_generation))?;
    let text =
        "all 6: managedFields are what they were: no owner lost a field, and no manager is called etch";
    screen.claim(Claim::since(text, &seen.views, before, other_owners))?;
    Ok(())
}

/// The owner applies its manifest again, and another manager another value: neither meets a conflict.
async fn free_to_apply(stage: &Stage, view: &View, seen: &Snapshot) -> Result<Claim> {
    let actor = &view.actor;
    let field = actor.kind.choice;
    let chosen = seen.role(Role::Chosen).find(|other| other.actor.kind == actor.kind);
    let value = chosen.and_then(|chosen| chosen.held(field));
    let text = format!(
        "{actor}: {} can apply its manifest again, anyone can apply {field}: {}; no conflict",
        actor.manager,
        named(value),
    );
    let owner = ActorApply { actor, manager: actor.manager, document: actor.manifest()? };
    let mut document = json!({"apiVersion": view.shown["apiVersion"], "kind": view.shown["kind"]});
    field.set(&mut document, value.cloned().unwrap_or_default());
    let anyone = ActorApply { actor, manager: "anyone", document };
    let mut problem = None;
    for apply in [owner, anyone] {
        let refused = stage.dry_run(&apply).await?.ok().err();
        problem = problem.or(refused.map(|error| format!("as {}: {error}", apply.manager)));
    }
    Ok(Claim::that(text, problem))
}

/// Contradicts "Etch patched what it may, and wrote nothing else".
fn other_writes(stage: &Stage, view: &View) -> Option<String> {
    let may = view.actor.role != Role::Ignored;
    match stage.writes_of_etch(&view.actor) {
        Ok([patches, 0]) if may == (patches > 0) => None,
        Ok([patches, others]) => Some(format!("{patches} patches and {others} other writes")),
        Err(error) => Some(format!("{error:#}")),
    }
}
