//! What the scenarios, the demo and the benchmarks of Etch share.
