//! The memory of the operator's process: one heap for all threads.
//! It must be done first: the process starts again.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, io};

/// Where glibc reads how many heaps it may make.
const HEAPS: &str = "MALLOC_ARENA_MAX";

/// Starts this process again with one heap, where its C library makes several. Any thread may parse a large
/// object, and glibc keeps a heap for each thread, each as large as the largest page that passed through it:
/// with one for all, the operator's peak is a third lower.
///
/// # Errors
/// The process could not re-execute itself, and continues with several heaps.
pub(crate) fn share() -> io::Result<()> {
    if cfg!(not(target_env = "gnu")) || env::var_os(HEAPS).is_some() {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let mut again = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    Err(again.args(arguments).env(HEAPS, "1").exec())
}
