//! What the scenarios, the demo and the benchmarks of Etch share.

pub mod conformance;
pub mod differential;
