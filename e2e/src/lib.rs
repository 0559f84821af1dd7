//! What the scenarios, the demo and the benchmarks of Etch share.

pub mod conformance;
pub mod control_plane;
pub mod differential;
