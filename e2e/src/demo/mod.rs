//! The demo: what a default that is only visible costs, and what Etch does about it, on a real control plane.
//! It must not claim what it has not read.

mod cast;
mod claims;
mod columns;
mod layout;
mod screen;
mod stage;
mod story;
mod style;
mod view;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

pub use screen::Screen;
pub use style::Style;

use crate::operator::{self, Operator};
use cast::{ACTORS, Role};
use stage::Stage;
use story::KINDS;

/// How many lines of the operator's log are shown where a claim is broken.
const TAIL: usize = 15;

/// A demo that has run, with everything still running.
pub struct Ending {
    /// Whether all claims hold.
    pub all_hold: bool,
    stage: Stage,
    operator: Option<Operator>,
}

/// Starts a control plane, runs the demo, and prints the result of its claims.
///
/// # Errors
/// Something cannot be done or read at all. The error names the place of the logs.
pub async fn run<W: Write>(screen: &mut Screen<W>) -> Result<Ending> {
    build().await?;
    let mut stage = Stage::set(&KINDS).await?;
    let log = stage.scene().log_path();
    let reported = tell(screen, &stage, &log).await;
    if !matches!(reported, Ok((true, _))) {
        stage.scene().keep();
    }
    let (all_hold, operator) =
        reported.with_context(|| format!("the demo broke off (Etch logs to {})", log.display()))?;
    Ok(Ending { all_hold, stage, operator })
}

impl Ending {
    /// Prints what can be done with the cluster while it is up.
    pub fn suggest<W: Write>(&self, screen: &mut Screen<W>) -> io::Result<()> {
        suggest(screen, &self.stage)
    }

    /// Ends Etch, then the cluster.
    ///
    /// # Errors
    /// Etch does not end as it should.
    pub async fn close(self) -> Result<()> {
        match self.operator {
            Some(operator) => operator.stop().await,
            None => Ok(()),
        }
    }
}

async fn tell<W: Write>(
    screen: &mut Screen<W>,
    stage: &Stage,
    log: &Path,
) -> Result<(bool, Option<Operator>)> {
    let kubernetes = stage.kubernetes();
    screen.flush_left(&format!(
        "etcd and kube-apiserver {kubernetes} on loopback, Etch installed, not yet running"
    ))?;
    let operator = story::tell(stage, screen).await?;
    let all_hold = screen.account()?;
    if !all_hold {
        show_tail(screen, log)?;
    }
    Ok((all_hold, operator))
}

/// Builds the operator, if that has not been done yet.
async fn build() -> Result<()> {
    let mut built = tokio::task::spawn_blocking(|| operator::binary().map(drop));
    if let Ok(built) = tokio::time::timeout(Duration::from_secs(2), &mut built).await {
        return built.context("the build of etch")?;
    }
    // Progress is for people and never the reason to fail.
    let _ = writeln!(io::stderr(), "demo: building etch with cargo, once");
    built.await.context("the build of etch")?
}

/// What can be done with a cluster that is left up.
fn suggest<W: Write>(screen: &mut Screen<W>, stage: &Stage) -> io::Result<()> {
    screen.flush_left("\nThe cluster stays up, with Etch at work, until Ctrl-C. In another terminal:\n")?;
    let example = ACTORS.iter().find(|actor| actor.role == Role::Ignored).unwrap_or(&ACTORS[0]);
    let (plural, name, key) = (example.kind.plural, example.name, view::key(example));
    for command in [
        format!("export KUBECONFIG={}", stage.kubeconfig().display()),
        "kubectl get defaultsreports,defaultspolicies".to_owned(),
        format!("kubectl get {plural} -o custom-columns={}", example.kind.columns()),
        format!("kubectl get {plural} {name} -o yaml --show-managed-fields"),
        "# What etcd holds of it:".to_owned(),
        format!("key=$(printf %s {key} | base64 | tr -d '\\n')"),
        format!("curl -s {}/v3/kv/range -d '{{\"key\":\"'$key'\"}}' |", stage.etcd_url()),
        "  jq -r .kvs[0].value | base64 -d".to_owned(),
        "# Etch no longer ignores it; and any write, this one too, stores what the API shows:".to_owned(),
        format!("kubectl annotate {plural} {name} etch-operator.io/ignore-"),
    ] {
        screen.line(&command)?;
    }
    Ok(())
}

/// The end of the operator's log, and where all of it is.
fn show_tail<W: Write>(screen: &mut Screen<W>, log: &Path) -> io::Result<()> {
    let Ok(text) = std::fs::read_to_string(log) else { return Ok(()) };
    screen.flush_left(&format!("\nEtch's log, {}, ends with", log.display()))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(" DEBUG ")).collect();
    for line in &lines[lines.len().saturating_sub(TAIL)..] {
        screen.flush_left(&format!("  {line}"))?;
    }
    Ok(())
}
