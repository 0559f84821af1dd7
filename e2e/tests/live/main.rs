//! The commands that look at a cluster before anything is installed in it, compared with the bytes in etcd
//! and against what really happens.

mod combined_defaults;
mod converted;
mod encrypted_etcd;
mod governed;
mod hand;
mod impact_prediction;
mod interrupted;
mod lint;
mod objects;
mod pairs;
mod persist_after;
mod persist_confirmation;
mod persist_policy_warnings;
mod published;
mod scoped;
mod skipped_and_dropped;
mod stage;
mod states;
mod types;
