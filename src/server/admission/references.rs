//! Whether objects that a request names exist: asked of the cluster, remembered for seconds, within bounds.
//! It does not see what they hold.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::time::{Instant, timeout};

use etch_admission::Lookup;

/// How long an answer counts.
const REMEMBERED: Duration = Duration::from_secs(5);
/// How many answers are remembered.
const MOST: usize = 10_000;
/// How many objects are asked for in one request.
const MOST_AT_ONCE: usize = 20;
/// How long a request waits for them.
const PATIENCE: Duration = Duration::from_millis(800);

/// An object that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub resource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Whether an object exists; `None` if that cannot be found out.
pub type Found = Option<bool>;

type Ask = dyn Fn(Reference) -> BoxFuture<'static, Found> + Send + Sync;

/// What is known about objects that requests name; cheap to clone.
#[derive(Clone)]
pub struct References {
    ask: Arc<Ask>,
    known: Arc<Mutex<HashMap<Reference, (Instant, Found)>>>,
}

impl From<&Lookup<'_>> for Reference {
    fn from(lookup: &Lookup<'_>) -> Self {
        let Lookup { group, version, resource, namespace, name } = *lookup;
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl References {
    /// Asks `ask` for what is not known.
    pub fn new(ask: impl Fn(Reference) -> BoxFuture<'static, Found> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), known: Arc::default() }
    }

    /// What is known without asking; `None` if nothing is.
    pub fn known(&self, reference: &Reference) -> Option<Found> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(reference).filter(|(at, _)| at.elapsed() < REMEMBERED).map(|(_, found)| *found)
    }

    /// Finds out about these, as far as there is time. What is not found out counts as unknown for as long as
    /// an answer.
    pub async fn find(&self, mut wanted: Vec<Reference>) {
        wanted.truncate(MOST_AT_ONCE);
        let asked = wanted.into_iter().map(|reference| async move {
            let found = timeout(PATIENCE, (self.ask)(reference.clone())).await.ok().flatten();
            (reference, found)
        });
        let answers = join_all(asked).await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() + answers.len() > MOST {
            known.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        }
        if known.len() + answers.len() > MOST {
            known.clear();
        }
        known.extend(answers.into_iter().map(|(reference, found)| (reference, (now, found))));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;

    use super::*;

    fn named(name: &str) -> Reference {
        Reference::from(&Lookup { group: "", version: "v1", resource: "secrets", namespace: "ns", name })
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_remembered_for_seconds_and_a_late_one_is_none() {
        let asked = Arc::new(AtomicUsize::default());
        let count = asked.clone();
        let references = References::new(move |reference| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                match &*reference.name {
                    "late" => std::future::pending().await,
                    name => Some(name == "there"),
                }
            }
            .boxed()
        });
        assert_eq!(references.known(&named("there")), None);
        references.find(vec![named("there"), named("gone"), named("late")]).await;
        assert_eq!(references.known(&named("there")), Some(Some(true)));
        assert_eq!(references.known(&named("gone")), Some(Some(false)));
        assert_eq!(references.known(&named("late")), Some(None));
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(references.known(&named("there")), None);
        references.find((0..50).map(|number| named(&number.to_string())).collect()).await;
        assert_eq!(asked.load(Ordering::SeqCst), 3 + MOST_AT_ONCE);
    }
}
