//! The `etch` command as a process: what it prints, and how it ends, whatever it is given.

mod action;
mod admit;
mod cases;
mod cluster;
mod examples;
mod fill;
mod flags;
mod garbage;
mod hindered;
mod impact_html;
mod leaks;
mod lint;
mod lint_go;
#[path = "../../../crates/etcd-snapshot/src/tests/pages.rs"]
mod pages;
mod plan;
mod process;
mod published;
mod repeated;
mod snapshot;
mod status;
mod traces;
mod unreachable;
