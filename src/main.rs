//! The `etch` command: parse, set up the log, dispatch.

mod cli;
mod commands;
mod telemetry;

use std::io::{self, BufWriter, Write};
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};

use etch_answers::failures::error_text;
use etch_answers::plain;

use crate::cli::{Cli, Command};
use crate::commands::global::LogFormat;
use crate::commands::outcome::{FAILURE, Outcome};
use crate::commands::run::share_heap;
use crate::commands::streams::stdout;
use crate::commands::{Failures, STACK, asynchronous};
use crate::telemetry::Telemetry;

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(wrong) => return failed(&[wrong]),
    };
    let telemetry = match cli.command {
        Command::Run(_) => {
            // This must run before any thread is spawned. If it fails, the operator needs more memory.
            let heap = share_heap();
            let telemetry = Telemetry::begin_operator(cli.global.log_format);
            if let Err(error) = heap {
                tracing::warn!(%error, "cannot share one heap among all threads; more memory is used");
            }
            telemetry
        }
        _ => Telemetry::begin(cli.global.log_format),
    };
    // A program that reads the operator's log as JSON reads this, too.
    let is_logged = matches!((&cli.command, cli.global.log_format), (Command::Run(_), LogFormat::Json));
    // The stack size of the main thread depends on the environment.
    let thread = thread::Builder::new().stack_size(STACK).spawn(|| dispatch(cli));
    let result = match thread.map(JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => Err(error.into()),
    };
    telemetry.end();
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) if is_logged => {
            tracing::error!(error = error_text(&*error), "etch failed");
            ExitCode::from(FAILURE)
        }
        Err(error) => match error.downcast_ref::<Failures>() {
            Some(Failures(all)) => failed(all),
            None => failed(&[error_text(&*error)]),
        },
    }
}

/// Prints what went wrong, each failure on one line whatever it quotes.
fn failed(failures: &[String]) -> ExitCode {
    for failure in failures {
        let _ = writeln!(io::stderr(), "error: {}", plain(failure));
    }
    ExitCode::from(FAILURE)
}

fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    let Cli { global, command } = cli;
    if let Some(cannot) = command.has_no_scope() {
        global.has_no_scope(cannot)?;
    }
    let mut out = BufWriter::new(stdout());
    let result = match command {
        Command::Run(run) => asynchronous()?.block_on(run.run(&global.target())),
        Command::Lint(lint) => lint.run(&global, &mut out),
        Command::Fill(fill) => fill.run(&global, &mut out),
        Command::Admit(admit) => admit.run(&mut out),
        Command::Rbac(rbac) => asynchronous()?.block_on(rbac.run(&global.target(), &mut out)),
        Command::Clean(clean) => asynchronous()?.block_on(clean.run(&global, &mut out)),
        Command::Resume(resume) => asynchronous()?.block_on(resume.run(&global.target(), &mut out)),
        Command::Plan(plan) => asynchronous()?.block_on(plan.run(&global, &mut out)),
        Command::Status(status) => asynchronous()?.block_on(status.run(&global, &mut out)),
        Command::Impact(impact) => asynchronous()?.block_on(impact.run(&global, &mut out)),
        Command::Audit(audit) => asynchronous()?.block_on(audit.run(&global, &mut out)),
        Command::Persist(persist) => asynchronous()?.block_on(persist.run(&global, &mut out)),
        Command::Revert(revert) => asynchronous()?.block_on(revert.run(&global, &mut out)),
        Command::Explain(explain) => asynchronous()?.block_on(explain.run(&global, &mut out)),
        Command::Crds(crds) => crds.run(&mut out),
        Command::Completions(completions) => completions.run(Cli::definition(false), &mut out),
        Command::Man(man) => man.run(Cli::definition(false)),
        Command::Version(version) => version.run(&mut out),
    };
    // Flush what the command printed before its error, and report the error even if the flush fails.
    let flushed = out.flush();
    let outcome = result?;
    flushed?;
    Ok(outcome)
}
