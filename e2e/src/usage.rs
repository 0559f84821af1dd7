//! What a process uses, as Linux counts it in `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// Seconds of processor time that a process has used.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub fn processor_time(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The fields follow the name in parentheses; user and system time are the 14th and 15th of all, in
    // hundredths.
    let (_, fields) = stat.rsplit_once(") ").context("a name")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let [user, system] =
        [fields.get(11), fields.get(12)].map(|field| field.and_then(|field| field.parse::<f64>().ok()));
    Ok((user.context("user time")? + system.context("system time")?) / 100.0)
}

/// Bytes of memory that a process has now.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub fn memory(process: u32) -> Result<u64> {
    line(process, "VmRSS")
}

/// Bytes of memory that a process has had at most.
///
/// # Errors
/// There is no such process, or no `/proc`.
pub fn peak_memory(process: u32) -> Result<u64> {
    line(process, "VmHWM")
}

fn line(process: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes: u64 = found.context("no such line")?.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}
