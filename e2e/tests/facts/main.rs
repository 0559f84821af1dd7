//! What Etch assumes about the API server, checked on a real one: each row sends a few requests and compares
//! what is answered with the bytes in etcd before and after.
//!
//! Etch itself takes no part. The release is chosen with `E2E_KUBERNETES=X.Y`; rows on which releases differ
//! state it.

mod applying;
mod cluster;
mod crds;
mod following;
mod legacy;
mod mutating;
mod owners;
mod publishing;
mod reading;
mod refusals;
mod streaming;
mod tabs;
mod versions;

use std::{process::ExitCode, sync::Arc};

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::cluster::Cluster;

/// One fact and how to check it.
struct Row {
    name: &'static str,
    check: for<'a> fn(&'a Cluster) -> LocalBoxFuture<'a, Result<()>>,
}

/// Rows from async functions: the function's name is its group of objects, the text after it is the fact.
macro_rules! rows {
    ($($check:ident: $fact:literal),* $(,)?) => {
        pub(crate) const ROWS: &[crate::Row] = &[$(crate::Row {
            name: concat!(stringify!($check), ": ", $fact),
            check: |cluster| Box::pin($check(cluster)),
        }),*];
    };
}
use rows;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new()?;
    // Started by the first row that runs, stopped after the last.
    let cluster = Arc::new(OnceCell::new());
    let rows = [
        reading::ROWS,
        streaming::ROWS,
        applying::ROWS,
        versions::ROWS,
        owners::ROWS,
        crds::ROWS,
        publishing::ROWS,
        refusals::ROWS,
        following::ROWS,
        legacy::ROWS,
        mutating::ROWS,
    ];
    let trials = rows.into_iter().flatten().map(|row| {
        let (runtime, cluster) = (runtime.handle().clone(), Arc::clone(&cluster));
        Trial::test(row.name, move || {
            let fact = async { (row.check)(cluster.get_or_try_init(Cluster::start).await?).await };
            runtime.block_on(fact).map_err(|error| Failed::from(format!("{error:#}")))
        })
    });
    Ok(libtest_mimic::run(&arguments, trials.collect()).exit_code())
}
