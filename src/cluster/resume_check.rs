//! Finds out whether anything has happened to the objects of a resource since a resource version that a watch
//! cannot continue from any more: without a watch cache no bookmarks come, and etcd compacts what an idle
//! resource was last seen at. It returns no resource version unless it is certain.

use std::time::Duration;

use super::watch::Change;
use super::{CallError, Cluster};
use etch_core::crd::Resource;
use etch_core::request::path::collection;
use etch_core::request::{METADATA, accepting};

/// How long it may take.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);

impl Cluster {
    /// The resource version that watches may continue from, where a resource still has so many `objects`,
    /// none of which was written since its watch has `delivered` everything: what was created since then is
    /// newer, and what was deleted is missing. `None` if something has happened. Each watch is of one
    /// namespace, or of all.
    ///
    /// It is a watch of metadata, which begins with all objects and marks where they end (R9, R10).
    ///
    /// # Errors
    /// See [`CallError`]. A server may not know such watches.
    pub async fn resume_point(
        &self,
        resource: &Resource,
        delivered: &[(Option<String>, u64)],
        objects: u64,
    ) -> Result<Option<String>, CallError> {
        let counted = async {
            let (mut left, mut from) = (objects, None);
            for (namespace, through) in delivered {
                let unchanged = self.unchanged(resource, namespace.as_deref(), *through, left).await?;
                let Some((found, end)) = unchanged else { return Ok(None) };
                left -= found;
                // In the first of the namespaces something may have happened since it was asked about.
                from = Some(from.map_or(end, |from: u64| from.min(end)));
            }
            Ok(from.filter(|_| left == 0).map(|from| from.to_string()))
        };
        tokio::time::timeout(RESUME_TIMEOUT, counted)
            .await
            .unwrap_or_else(|_| Err(self.timed_out(RESUME_TIMEOUT)))
    }

    /// How many objects a namespace has, and where they end, where none was written since `through` and there
    /// are no more than `most`; `None` otherwise.
    async fn unchanged(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        through: u64,
        most: u64,
    ) -> Result<Option<(u64, u64)>, CallError> {
        let path = format!(
            "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
             &allowWatchBookmarks=true&timeoutSeconds={}",
            collection(resource, namespace),
            RESUME_TIMEOUT.as_secs(),
        );
        let mut watch = self.watch_at(resource, accepting(&path, METADATA)).await?;
        let mut found = 0;
        while let Some(change) = watch.next().await? {
            match change {
                Change::Created(object)
                    if object.revision().is_some_and(|at| at <= through) && found < most =>
                {
                    found += 1;
                }
                // A lower one comes from an etcd that was restored.
                Change::Bookmark(end) => {
                    let end = end.parse::<u64>().ok().filter(|end| *end >= through);
                    return Ok(end.map(|end| (found, end)));
                }
                Change::Created(_) | Change::Applied(_) | Change::Deleted(_) => break,
            }
        }
        Ok(None)
    }
}
