//! The subcommands, one file each.
//! They must not decide anything: they connect what was typed with the library.

pub(crate) mod audit;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod crds;
mod etcd;
pub(crate) mod explain;
pub(crate) mod fill;
pub(crate) mod global;
pub(crate) mod impact;
pub(crate) mod lint;
pub(crate) mod outcome;
pub(crate) mod persist;
pub(crate) mod rbac;
pub(crate) mod run;
pub(crate) mod version;

use std::io;

/// What runs requests.
pub(crate) fn asynchronous() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Several failures as one error; each of them on a line of its own.
pub(crate) fn failure(failures: Vec<String>) -> anyhow::Error {
    anyhow::Error::msg(failures.join("\nerror: "))
}
