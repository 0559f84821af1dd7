//! Whole clusters in one process, on virtual time: CRDs and their objects, two API servers of which one may
//! lag behind, users at every version, and Etch, whose [machine](etch_core::engine::crd::machine::CrdMachine)
//! of each CRD is driven as the operator drives it. Whatever happens follows from a seed.
//!
//! | file | is |
//! |---|---|
//! | [`server`], `write`, [`patch`], [`fields`] | what an API server makes of one request, held against a real one by
//! `tests/simulator` |
//! | [`admission`] | what webhooks make of what is written |
//! | [`etcd`] | one CRD and its objects, at all its generations |
//! | [`etch`] and its folder | what performs the machine's commands, and loses answers |
//! | [`cluster`] | what happens to all of it, and what must be so in the end |
//! | [`replicas`] | which of two replicas leads, by a Lease |
//! | [`life`] | what happens in one life, by a seed |
//! | [`laws`], [`sabotage`] | what Etch may not do, and ways to do it |
//! | [`random`], [`dice`] | what makes the choices of a life |
//! | [`bounds`] | how much may happen in what is explored to its end |
//! | [`worlds`] | how CRDs change, and what users send |

pub mod admission;
pub mod bounds;
pub mod cluster;
pub mod dice;
pub mod etcd;
pub mod etch;
pub mod fields;
pub mod laws;
pub mod life;
pub mod patch;
pub mod random;
pub mod replicas;
pub mod sabotage;
pub mod server;
pub mod worlds;
mod write;
