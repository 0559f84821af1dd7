//! The subcommands, one file each.
//! They must not decide anything: they connect what was typed with the library.

pub(crate) mod completions;
pub(crate) mod crds;
pub(crate) mod impact;
pub(crate) mod run;
pub(crate) mod version;
