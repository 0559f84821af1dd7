//! What the scenarios, the demo and the benchmarks of Etch share.

pub mod access;
pub mod admission;
pub mod aged;
pub mod bench;
pub mod cluster;
pub mod conformance;
pub mod control_plane;
pub mod corpus;
pub mod demo;
pub mod differential;
pub mod dist;
pub mod drift;
pub mod environment;
pub mod faults;
pub mod generate;
pub mod install;
pub mod logs;
pub mod matrix;
pub mod operator;
pub mod paths;
pub mod permissions;
pub mod ports;
pub mod pre_upgrade;
pub mod probe;
pub mod process;
pub mod releases;
pub mod scene;
pub mod serving;
pub mod sized_widgets;
pub mod usage;
pub mod webhook;
pub mod widgets;

pub use ci::{cargo, go, target};
