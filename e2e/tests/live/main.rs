//! The commands that look at a cluster before anything is installed in it, held against the bytes in etcd and against what
//! really happens.

mod converted;
mod foresight;
mod lint;
mod objects;
mod pairs;
mod sealed;
mod stage;
mod states;
