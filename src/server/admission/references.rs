//! Whether objects that a request names exist: asked of the cluster, remembered for seconds, within bounds.
//! It does not see what they hold.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use etch_admission::Lookup;

/// How long an answer counts.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// How many answers are remembered.
const MOST: usize = 10_000;
/// How many objects are asked for at once, of those that a request names.
const MOST_AT_ONCE: usize = 20;
/// How long a request waits for them.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(800);

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

/// What was found out about some objects.
pub type Answers = HashMap<Reference, Found>;

type Ask = dyn Fn(Reference) -> BoxFuture<'static, Option<Found>> + Send + Sync;

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
    /// Calls `ask` for what is not cached; it returns `None` for a failure that may be temporary.
    pub fn new(ask: impl Fn(Reference) -> BoxFuture<'static, Option<Found>> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), known: Arc::default() }
    }

    /// What is known without asking; `None` if nothing is.
    pub fn known(&self, reference: &Reference) -> Option<Found> {
        let known = self.known.lock();
        known.get(reference).filter(|(at, _)| at.elapsed() < CACHE_TTL).map(|(_, found)| *found)
    }

    /// Looks these up, a few in parallel, until the deadline; those without an answer by then are left out.
    pub async fn find(&self, wanted: impl IntoIterator<Item = Reference>) -> Answers {
        let until = Instant::now() + LOOKUP_TIMEOUT;
        let asked = stream::iter(wanted).map(|reference| async move {
            let found = (self.ask)(reference.clone()).await;
            (reference, found)
        });
        let mut asked = pin!(asked.buffer_unordered(MOST_AT_ONCE));
        let mut answers = Answers::new();
        while let Ok(Some((reference, found))) = timeout_at(until, asked.next()).await {
            answers.extend(found.map(|found| (reference, found)));
        }
        self.remember(&answers);
        answers
    }

    /// Caches only objects that exist: a missing one may be created at any time.
    fn remember(&self, answers: &Answers) {
        let lasting = answers.iter().filter(|(_, found)| **found != Some(false));
        let lasting: Vec<_> = lasting.map(|(reference, found)| (reference.clone(), *found)).collect();
        let mut known = self.known.lock();
        let now = Instant::now();
        if known.len() + lasting.len() > MOST {
            known.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        }
        if known.len() + lasting.len() > MOST {
            known.clear();
        }
        known.extend(lasting.into_iter().take(MOST).map(|(reference, found)| (reference, (now, found))));
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
    async fn an_answer_is_remembered_for_seconds_unless_the_object_is_missing() {
        let asked = Arc::new(AtomicUsize::default());
        let count = asked.clone();
        let references = References::new(move |reference| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                match &*reference.name {
                    "late" => std::future::pending().await,
                    "failed" => None,
                    "forbidden" => Some(None),
                    name => Some(Some(name == "there")),
                }
            }
            .boxed()
        });
        assert_eq!(references.known(&named("there")), None);
        let answers = references.find(["there", "gone", "forbidden", "failed", "late"].map(named)).await;
        let expected = [("there", Some(true)), ("gone", Some(false)), ("forbidden", None)];
        assert_eq!(answers, expected.map(|(name, found)| (named(name), found)).into());
        assert_eq!(references.known(&named("there")), Some(Some(true)));
        assert_eq!(references.known(&named("forbidden")), Some(None));
        assert_eq!(references.known(&named("gone")), None, "it may exist by now");
        assert_eq!(references.known(&named("failed")), None);
        assert_eq!(references.known(&named("late")), None);
        assert_eq!(asked.load(Ordering::SeqCst), 5);
        tokio::time::advance(CACHE_TTL).await;
        assert_eq!(references.known(&named("there")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_asked_for_as_far_as_there_is_time_and_some_at_once() {
        let (asking, most) = (Arc::new(AtomicUsize::default()), Arc::new(AtomicUsize::default()));
        let counts = (asking.clone(), most.clone());
        let references = References::new(move |_| {
            let (asking, most) = counts.clone();
            async move {
                most.fetch_max(asking.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(LOOKUP_TIMEOUT / 4).await;
                asking.fetch_sub(1, Ordering::SeqCst);
                Some(Some(true))
            }
            .boxed()
        });
        let numbered = |count: usize| (0..count).map(|number| named(&number.to_string()));
        assert_eq!(references.find(numbered(3 * MOST_AT_ONCE)).await.len(), 3 * MOST_AT_ONCE);
        assert_eq!(most.load(Ordering::SeqCst), MOST_AT_ONCE);
        let begun = Instant::now();
        let answers = references.find(numbered(10 * MOST_AT_ONCE)).await;
        assert!((3 * MOST_AT_ONCE..10 * MOST_AT_ONCE).contains(&answers.len()), "{}", answers.len());
        assert_eq!(begun.elapsed(), LOOKUP_TIMEOUT);
    }
}
