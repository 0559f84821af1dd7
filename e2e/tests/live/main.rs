//! The commands that look at a cluster before anything is installed in it, held against the bytes in etcd and against what
//! really happens.

mod behind;
mod converted;
mod foresight;
mod governed;
mod hand;
mod heeded;
mod interrupted;
mod left;
mod lint;
mod objects;
mod pairs;
mod published;
mod scoped;
mod sealed;
mod stage;
mod states;
mod types;
mod undone;
