//! What etcd holds: the raw values of custom resources, from a running etcd or from a snapshot of one.
//! It only reads, and does not guess what it cannot read.

mod gateway;
mod snapshot;

pub use gateway::{Etcd, EtcdTarget};
pub use snapshot::{Snapshot, SnapshotError};
