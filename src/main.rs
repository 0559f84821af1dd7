//! The `etch` command: parse, set up the log, dispatch.

mod cli;
mod commands;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use tracing::Level;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::commands::asynchronous;
use crate::commands::global::LogFormat;
use crate::commands::outcome::{FAILURE, Outcome};

fn main() -> ExitCode {
    let cli = Cli::read();
    // What a command finds is its output; what the operator does is its log.
    let level = if matches!(cli.command, Command::Run(_)) { Level::INFO } else { Level::WARN };
    log_to_stderr(cli.global.log_format, level);
    match dispatch(cli) {
        Ok(outcome) => outcome.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}", told(&error));
            ExitCode::from(FAILURE)
        }
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<Outcome> {
    let Cli { global, command } = cli;
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = match command {
        Command::Run(run) => asynchronous()?.block_on(run.run(&global.target()))?,
        Command::Lint(lint) => lint.run(&global, &mut out)?,
        Command::Fill(fill) => fill.run(&mut out)?,
        Command::Rbac(rbac) => asynchronous()?.block_on(rbac.run(&global.target(), &mut out))?,
        Command::Clean(clean) => asynchronous()?.block_on(clean.run(&global.target(), &mut out))?,
        Command::Impact(impact) => asynchronous()?.block_on(impact.run(&global, &mut out))?,
        Command::Audit(audit) => asynchronous()?.block_on(audit.run(&global, &mut out))?,
        Command::Persist(persist) => asynchronous()?.block_on(persist.run(&global, &mut out))?,
        Command::Explain(explain) => asynchronous()?.block_on(explain.run(&global, &mut out))?,
        Command::Crds(crds) => crds.run(&mut out)?,
        Command::Completions(completions) => completions.run(Cli::definition(false), &mut out)?,
        Command::Version(version) => version.run(&mut out)?,
    };
    out.flush()?;
    Ok(outcome)
}

fn log_to_stderr(format: LogFormat, level: Level) {
    // kube's own events quote what the server said, and that may hold values of objects.
    let filter = EnvFilter::builder()
        .with_env_var("ETCH_LOG")
        .with_default_directive(level.into())
        .from_env_lossy()
        .add_directive("kube_client=off".parse().expect("a directive"))
        .add_directive("kube=off".parse().expect("a directive"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// The error and its causes, each of them once: some tell their causes themselves.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
