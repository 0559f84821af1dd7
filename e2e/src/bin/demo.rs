//! Shows the story of a default on a real control plane, and checks every claim of it.
//!
//! Everything but the command line and the signals is in `e2e::demo`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Result, bail};
use clap::Parser;
use e2e::demo::{self, Screen, Style};
use tokio::signal::unix::{SignalKind, signal};

/// The exit status where the demo itself failed, or was interrupted; 1 is for a broken claim.
const FAILURE: u8 = 2;

/// Shows what the API shows and what etcd holds, before and after Etch, on a control plane of its own.
///
/// Every line with a ✓ has been checked against etcd. Exit status: 0 if all claims hold, 1 if one is
/// broken, 2 if the demo could not be carried out. The first run builds etcd and kube-apiserver, which takes
/// minutes.
#[derive(Parser)]
#[command(name = "cargo demo")]
struct Arguments {
    /// Leave the cluster up in the end, with Etch at work, until Ctrl-C.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "demo: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}

/// A signal ends it in the regular way: what has been started is stopped, what is temporary is removed.
async fn run(Arguments { keep }: Arguments) -> Result<bool> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut signalled = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let mut screen = Screen::new(io::stdout().lock(), Style::of(&io::stdout()));
    let ending = tokio::select! {
        reported = demo::run(&mut screen) => reported?,
        () = signalled() => bail!("interrupted"),
    };
    if keep {
        ending.suggest(&mut screen)?;
        signalled().await;
    } else if ending.all_hold {
        screen.flush_left("To look for yourself: `cargo demo --keep` leaves the cluster up.")?;
    }
    let all_hold = ending.all_hold;
    ending.close().await?;
    Ok(all_hold)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
