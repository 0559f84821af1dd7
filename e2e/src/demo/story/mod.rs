//! The story: what is done, shown and claimed, a chapter a file.
//! It prints only on the screen, and judges only by claims.

mod change;
mod etch;
mod upgrade;
mod versions;
mod yesterday;

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde_json::Value;

use super::cast::{ACTORS, Actor, CERTIFICATES, CRONTABS, Kind, Role};
use super::claims::named;
use super::columns::side_by_side;
use super::layout::table;
use super::screen::Screen;
use super::stage::Stage;
use super::view::View;
use crate::operator::Operator;

/// Both kinds.
pub(super) const KINDS: [&Kind; 2] = [&CERTIFICATES, &CRONTABS];

/// Runs all chapters. The operator is still running in the end, unless a chapter broke off.
///
/// # Errors
/// Something cannot be done or read. What is not as it should be is a broken claim, and the chapter the last.
pub(super) async fn tell<W: Write>(stage: &Stage, screen: &mut Screen<W>) -> Result<Option<Operator>> {
    let yesterday = yesterday::tell(stage, screen).await?;
    if !screen.all_hold() {
        return Ok(None);
    }
    let upgraded = upgrade::tell(stage, screen, &yesterday).await?;
    if !screen.all_hold() {
        return Ok(None);
    }
    let (operator, stored) = etch::tell(stage, screen, &upgraded).await?;
    if screen.all_hold() {
        change::tell(stage, screen, &stored).await?;
    }
    match screen.all_hold() {
        true => versions::tell(stage, screen, operator).await.map(Some),
        false => Ok(Some(operator)),
    }
}

/// Shows both sides of objects.
fn compare<'a, W: Write>(screen: &mut Screen<W>, views: impl Iterator<Item = &'a View>) -> io::Result<()> {
    for view in views {
        let part = view.actor.kind.part;
        screen.line(&screen.style().heading(&format!("{} {part}", view.actor)))?;
        let titles = ["the API shows", "etcd holds"];
        screen.block(&side_by_side(screen.style(), titles, view.shown(part), view.held(part)))?;
    }
    Ok(())
}

/// Where releases are from.
fn show_files<W: Write>(screen: &mut Screen<W>, releases: &[(&Kind, usize)]) -> io::Result<()> {
    let rows = releases.iter().map(|(kind, index)| {
        let release = &kind.releases[*index];
        row([&format!("yaml/{}/{}", kind.folder, release.file), release.origin])
    });
    table(&rows.collect::<Vec<_>>()).iter().try_for_each(|line| screen.line(line))
}

/// Where a release is from, and how the kind's defaults change in it.
fn show_release<W: Write>(screen: &mut Screen<W>, kind: &Kind, index: usize) -> Result<()> {
    show_files(screen, &[(kind, index)])?;
    let (before, now) = (kind.crd(&kind.releases[index - 1])?, kind.crd(&kind.releases[index])?);
    let mut rows = Vec::new();
    for field in kind.defaults {
        let (before, now) = (field.default_in(&before), field.default_in(&now));
        let (sign, change) = match (before, now) {
            (before, now) if before == now => continue,
            (None, _) => ("  +", format!("default: {}", named(now))),
            (_, None) => ("  -", format!("default: {}", named(before))),
            (_, _) => ("  ~", format!("default: {} → {}", named(before), named(now))),
        };
        rows.push(row([sign, field.0, &change]));
    }
    Ok(screen.block(&table(&rows))?)
}

/// Rolls a release out and waits until the API reads every object by it.
async fn roll_out(stage: &Stage, kind: &'static Kind, index: usize) -> Result<()> {
    let crd = kind.crd(&kind.releases[index])?;
    stage.roll_out(&crd).await?;
    // The one that no client writes follows the schema.
    let follower = ACTORS.iter().find(|actor| actor.kind == kind && actor.role == Role::Ignored);
    let follower: &Actor = follower.context("somebody is ignored")?;
    stage.until_shown(follower, kind.choice, kind.choice.default_in(&crd)).await
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// A value in a table.
fn cell(value: Option<&Value>) -> String {
    value.map_or_else(|| "–".to_owned(), Value::to_string)
}
