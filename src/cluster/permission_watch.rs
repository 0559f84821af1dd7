//! Detects changes of Etch's permissions. `access` checks which ones are missing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::debug;

use super::{CallError, Cluster, random};
use etch_core::request::review;

/// How often the rules are read: one small request, however many CRDs there are.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long after one look the next follows at the earliest.
const AT_LEAST: Duration = Duration::from_secs(1);
/// How long after the last work they are read. An operator without work needs no permission and costs
/// nothing; a watch that is renewed then shows which permissions were revoked meanwhile.
const QUIET_AFTER: Duration = Duration::from_secs(30);
/// Jitter: listeners must not all ask at the same moment after a change.
const SPREAD: Duration = Duration::from_secs(3);
/// In how many namespaces the rules are read in one look, where permissions are limited to some.
const AT_ONCE: usize = 10;
/// A namespace of every cluster.
const ANY: &str = "default";

/// Receives changes of Etch's permissions.
#[derive(Clone, Debug)]
pub struct Permissions {
    changes: watch::Receiver<()>,
    due: Option<Instant>,
}

impl Permissions {
    /// Receives the changes from now on.
    pub fn of(changes: &watch::Sender<()>) -> Self {
        Self { changes: changes.subscribe(), due: None }
    }

    /// Waits until they have changed, and a moment longer. This future may be dropped at any time: a change
    /// stays due.
    pub async fn changed(&mut self) {
        let due = match self.due {
            Some(due) => due,
            None if self.changes.changed().await.is_err() => return std::future::pending().await,
            None => {
                let part = (random() % 16) as u32;
                *self.due.insert(Instant::now() + SPREAD * part / 16)
            }
        };
        tokio::time::sleep_until(due).await;
        self.due = None;
    }
}

impl Permissions {
    /// Whether they have changed since this was last asked.
    pub fn have_changed(&mut self) -> bool {
        let changed = self.changes.has_changed().unwrap_or_default();
        self.changes.mark_unchanged();
        changed
    }
}

impl Cluster {
    /// Notifies `listeners`, for as long as it is polled, that the rules which grant our permissions have
    /// changed.
    ///
    /// A watch that is open stays open when its permission is taken away, for minutes. If the server cannot
    /// list our rules, listeners are not notified, and the next request that needs a missing permission shows
    /// that it is missing.
    pub async fn follow_permissions(&self, listeners: &watch::Sender<()>) -> Infallible {
        let mut known = BTreeMap::new();
        let mut is_due = true;
        loop {
            if is_due {
                if self.look(&mut known).await {
                    debug!("the permissions changed");
                    listeners.send_replace(());
                }
                tokio::time::sleep(AT_LEAST).await;
            }
            is_due = tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => self.worked.borrow().elapsed() <= QUIET_AFTER,
                // What was allowed now may be forbidden again before the next look: the rules of now are to
                // compare with.
                () = self.asked.notified() => true,
            };
        }
    }

    /// Reads the rules; returns whether they have changed. Where permissions are limited to many namespaces,
    /// each look continues with those that were read longest ago.
    async fn look(&self, known: &mut BTreeMap<String, (Instant, Vec<String>)>) -> bool {
        let in_use = self.permitted_in.names();
        // What holds in all namespaces is part of the rules of each.
        known.retain(|namespace, _| namespace == ANY || in_use.contains(namespace));
        let mut due: Vec<String> = in_use.into_iter().filter(|namespace| namespace != ANY).collect();
        due.sort_by_key(|namespace| known.get(namespace).map(|(at, _)| *at));
        due.truncate(AT_ONCE);
        let mut has_changed = false;
        for namespace in std::iter::once(ANY.to_owned()).chain(due) {
            match self.rules(&namespace).await {
                Ok(rules) => {
                    has_changed |= known.get(&namespace).is_some_and(|(_, before)| *before != rules);
                    known.insert(namespace, (Instant::now(), rules));
                }
                Err(error) => debug!(%error, "cannot read the permissions"),
            }
        }
        has_changed
    }

    /// The rules that apply to Etch in a namespace.
    async fn rules(&self, namespace: &str) -> Result<Vec<String>, CallError> {
        let answer = self.call_for_json(review::rules(namespace)).await?;
        Ok(review::rules_of(&answer))
    }
}
