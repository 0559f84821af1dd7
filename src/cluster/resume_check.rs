//! Finds out whether anything has happened to the objects of a resource since a resource version that a watch
//! cannot go on from any more: without a watch cache no bookmarks come, and etcd compacts what an idle
//! resource was last seen at. It must not return a resource version unless it is certain.

use std::time::Duration;

use super::crds::{METADATA, accepting};
use super::read::collection;
use super::watch::Change;
use super::{CallError, Cluster};
use etch_core::crd::Resource;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Cluster {
    /// The resource version that a watch may go on from, where a resource still has so many `objects`, none
    /// of which was written since `through`: what was created since then is newer, and what was deleted is
    /// missing. `None` if something has happened.
    ///
    /// It is a watch of metadata, which begins with all objects and marks where they end (R9, R10).
    ///
    /// # Errors
    /// See [`CallError`]. A server may not know such watches.
    pub async fn resume_point(
        &self,
        resource: &Resource,
        through: u64,
        objects: u64,
    ) -> Result<Option<String>, CallError> {
        let path = format!(
            "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds={}",
            collection(resource, None),
            PATIENCE.as_secs(),
        );
        let counted = async {
            let mut watch = self.watch_at(resource, accepting(&path, METADATA)).await?;
            let mut left = objects;
            while let Some(change) = watch.next().await? {
                match change {
                    Change::Created(object)
                        if object.revision().is_some_and(|at| at <= through) && left > 0 =>
                    {
                        left -= 1;
                    }
                    // A lower one comes from an etcd that was restored.
                    Change::Bookmark(end)
                        if left == 0 && end.parse::<u64>().is_ok_and(|end| end >= through) =>
                    {
                        return Ok(Some(end));
                    }
                    Change::Created(_) | Change::Applied(_) | Change::Deleted(_) | Change::Bookmark(_) => {
                        break;
                    }
                }
            }
            Ok(None)
        };
        tokio::time::timeout(PATIENCE, counted).await.unwrap_or_else(|_| Err(self.timed_out(PATIENCE)))
    }
}
