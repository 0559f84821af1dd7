//! Law 7 on a real control plane: what is broken stops only itself, and is reported with its name and the
//! reason. And law 9 with it: after every case nothing that Etch prints or writes holds a value of any
//! object.
//!
//! All cases share one operator, with the service account of `config/rbac`, and each has an API group to
//! itself.

#![expect(clippy::print_stdout, reason = "a test says what it has measured")]

mod converting;
mod crds;
mod healthy_beside_broken;
mod hostile_objects;
mod outages;
mod refused;
mod stage;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::stage::Stage;

/// One thing that is broken, and what must result from it.
struct Case {
    name: &'static str,
    /// Whether it slows down other cases, and they must not slow it down.
    alone: bool,
    play: for<'a> fn(&'a Stage, &'static str) -> LocalBoxFuture<'a, Result<()>>,
}

/// Cases from async functions; each gets the stage and its own name, which is that of its API group too.
macro_rules! cases {
    ($($play:ident),* $(,)?) => { cases![false; $($play),*]; };
    (alone: $($play:ident),* $(,)?) => { cases![true; $($play),*]; };
    ($alone:literal; $($play:ident),*) => {
        pub(crate) const CASES: &[crate::Case] = &[$(crate::Case {
            name: stringify!($play),
            alone: $alone,
            play: |stage, name| Box::pin($play(stage, name)),
        }),*];
    };
}
use cases;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Cases wait most of the time.
    arguments.test_threads.get_or_insert(32);
    let runtime = Runtime::new()?;
    let stage = Arc::new(OnceCell::new());
    let cases = [
        refused::CASES,
        outages::CASES,
        converting::CASES,
        hostile_objects::CASES,
        crds::CASES,
        healthy_beside_broken::CASES,
    ];
    let trials = cases.into_iter().flatten().map(|case| {
        let (runtime, stage) = (runtime.handle().clone(), Arc::clone(&stage));
        Trial::test(case.name, move || {
            let played = async {
                let stage: &Stage = stage.get_or_try_init(Stage::set).await?;
                stage.play(case).await
            };
            runtime.block_on(played).map_err(|error| Failed::from(format!("{error:#}")))
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    Ok(conclusion.exit_code())
}
