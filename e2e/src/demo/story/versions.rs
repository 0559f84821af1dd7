//! Chapter 5: another version becomes the storage version, and the old one goes.

use std::io::Write;

use anyhow::{Context, Result};
use serde_json::json;

use super::{cell, row};
use crate::demo::cast::{ACTORS, Actor, CRONTABS, Field, LATECOMER, NEW_VERSION, Role};
use crate::demo::claims::Claim;
use crate::demo::layout::table;
use crate::demo::screen::Screen;
use crate::demo::stage::Stage;
use crate::demo::view::{Snapshot, View};
use crate::operator::Operator;

/// The field with the version of an object.
const VERSION: Field = Field(".apiVersion");
const OLD: &str = "stable.example.com/v1";
const NEW: &str = "stable.example.com/v2";

pub(super) async fn tell<W: Write>(
    stage: &Stage,
    screen: &mut Screen<W>,
    operator: Operator,
) -> Result<Operator> {
    screen.chapter("A new storage version: the old one goes, once no object is stored there")?;
    let crontabs: Vec<Actor> =
        ACTORS.iter().chain([&LATECOMER]).filter(|actor| actor.kind == &CRONTABS).copied().collect();
    let ignored = crontabs.iter().find(|actor| actor.role == Role::Ignored).context("one is ignored")?;
    let before = stage.look(&crontabs).await?;
    stage.trim(&CRONTABS).await?;
    stage.roll_out(&CRONTABS.crd(&NEW_VERSION)?).await?;
    stage.until_listed(&CRONTABS, &["v1", "v2"]).await?;
    let wording = stage.persisted(&CRONTABS).await;
    let seen = stage.look(&crontabs).await?;
    let file = format!("yaml/{}/{}", CRONTABS.folder, NEW_VERSION.file);
    screen.line(&table(&[row([&file, NEW_VERSION.origin])]).concat())?;
    screen
        .say("A policy has storedVersions: Trim. Its report says what keeps v1 in status.storedVersions.")?;
    show_versions(screen, &before, &seen)?;
    let text = "the 3 that Etch may write: etcd holds them at v2";
    let written = seen.views.iter().filter(|view| view.actor != *ignored);
    screen.claim(Claim::about(text, written, |view| not_at(view, NEW)))?;
    let text = format!("{}: DefaultsPersisted is True again", CRONTABS.crd_name());
    screen.claim(Claim::that(text, wording.err().map(|error| format!("{error:#}"))))?;
    screen.blank()?;

    screen.say(
        "For eleven minutes an API server may lag behind a change; then Etch asks about each object once \
         more. The demo does not wait: it stops Etch, sets that time in the report to the past, and starts \
         it again.",
    )?;
    operator.stop().await?;
    stage.verify_now(&CRONTABS).await?;
    let operator = stage.start_etch()?;
    let why = json!(["1 object is ignored by annotation"]);
    let report = stage.reported(&CRONTABS, |versions| versions["kept"][0]["reasons"] == why).await;
    let text = format!("the report: v1 is kept, because {}", why[0].as_str().unwrap_or_default());
    screen.claim(Claim::that(text, report.err().map(|error| format!("{error:#}"))))?;
    let seen = stage.look(&[*ignored]).await?;
    let text = format!("{ignored}: etcd holds it at v1, as the annotation asks");
    screen.claim(Claim::about(text, &seen.views, |view| not_at(view, OLD)))?;
    let still = stage.until_listed(&CRONTABS, &["v1", "v2"]).await;
    screen.claim(Claim::that(
        "status.storedVersions is v1, v2",
        still.err().map(|error| format!("{error:#}")),
    ))?;
    screen.blank()?;

    screen.say("kubectl annotate crontab left-alone etch-operator.io/ignore-")?;
    stage.end_ignoring(ignored).await?;
    let gone = stage.until_listed(&CRONTABS, &["v2"]).await;
    let all = stage.look(&crontabs).await?;
    screen.claim(Claim::about("all 4: etcd holds them at v2", &all.views, |view| not_at(view, NEW)))?;
    screen.claim(Claim::that("status.storedVersions is v2", gone.err().map(|error| format!("{error:#}"))))?;
    let refused = stage.dry_run_crd(&CRONTABS.crd_without(&NEW_VERSION, "v1")?).await?.ok().err();
    screen.claim(Claim::that(
        "the API server accepts the CRD without v1 (a dry run)",
        refused.map(|error| format!("{error:#}")),
    ))?;
    Ok(operator)
}

/// At which version etcd held and holds objects.
fn show_versions<W: Write>(screen: &mut Screen<W>, before: &Snapshot, now: &Snapshot) -> Result<()> {
    let mut rows = vec![row(["OBJECT", "ETCD BEFORE", "ETCD NOW", ""])];
    for view in &now.views {
        let earlier = before.of(&view.actor)?.held(VERSION);
        let comment = match view.actor.role {
            Role::Ignored => "ignored by Etch",
            Role::Stored | Role::Chosen | Role::New => "moved",
        };
        rows.push(row([&view.actor.to_string(), &cell(earlier), &cell(view.held(VERSION)), comment]));
    }
    Ok(screen.block(&table(&rows))?)
}

/// Contradicts "etcd holds it at this version".
fn not_at(view: &View, version: &str) -> Option<String> {
    let held = view.held(VERSION);
    (held != Some(&json!(version))).then(|| format!("etcd holds it at {}", cell(held)))
}
