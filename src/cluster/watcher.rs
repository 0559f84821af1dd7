//! kube-runtime's watchers of CRDs (metadata only), policies and what admission needs, with their three
//! weaknesses fixed.
//!
//! - K1: a back-off that every LIST resets is none. Here an attempt counts as good once its list is complete.
//! - K2: a watch that is accepted and closed at once is opened again without a pause. [`Paced`] holds the
//!   next one back.
//! - K3: an HTTP 410 at the start of a watch never lists again. Here it starts a new watcher.
//!
//! kube-runtime parses with a depth limit (C7), and users may nest objects and `managedFields` to any depth:
//! they are read as [`Deep`], and custom resources come through [`super::ResumingWatch`].

use std::convert::identity;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, unfold};
use futures::{Stream, StreamExt};
use http::{Request, Response};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::client::Body;
use kube::core::{PartialObjectMeta, PartialObjectMetaExt};
use kube::runtime::watcher as watch;
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use serde::de::Error;
use tokio::sync::watch as watch_channel;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, timeout};
use tower::BoxError;
use tracing::warn;

use super::admission::WebhookConfiguration;
use super::call::DEADLINE;
use super::cause::cause;
use super::{Backoff, CallError, Cluster, Server, WatchHealth};
use crate::metrics::Metrics;
use etch_admission::api::EmbeddedSchema;
use etch_admission::{CONFIGURATION, FactObject};
use etch_core::api::DefaultsPolicy;
use etch_core::deep_object::{Deep, DeepMetadata, DeepObject};
use etch_core::engine::watch_health::AT_ONCE;
use etch_core::refusal::Refusal;
use etch_core::request::counted::{RequestVerb, outcome, verb};

/// A CRD of which only the metadata was read.
pub type CrdMeta = PartialObjectMeta<CustomResourceDefinition>;

/// The waits between attempts that fail.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LAST_WAIT: Duration = Duration::from_secs(30);

impl Cluster {
    /// The metadata of all CRDs, for as long as the stream is polled.
    pub fn watch_crds(&self, health: WatchHealth) -> impl Stream<Item = Event<CrdMeta>> + Send + use<> {
        let client = self.paced_client(&health);
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        self.with_retries("customresourcedefinitions", health, move || {
            let api = Api::<DeepMetadata>::all_with(client.clone(), &resource);
            let only_metadata = |crd: DynamicObject| crd.metadata.into_response_partial();
            watch_deep(api, watcher::Config::default(), only_metadata)
        })
    }

    /// All policies, read without a type: one that this version cannot understand must not hide the others.
    pub fn watch_policies(
        &self,
        health: WatchHealth,
    ) -> impl Stream<Item = Event<DynamicObject>> + Send + use<> {
        let client = self.paced_client(&health);
        let resource = ApiResource::erase::<DefaultsPolicy>(&());
        self.with_retries("defaultspolicies", health, move || {
            let api = Api::<DeepObject>::all_with(client.clone(), &resource);
            watch_deep(api, watcher::Config::default(), identity)
        })
    }

    /// All EmbeddedSchemas, read without a type, for the same reason.
    pub fn watch_embedded_schemas(&self) -> impl Stream<Item = Event<DynamicObject>> + Send + use<> {
        let health = WatchHealth::default();
        let client = self.paced_client(&health);
        let resource = ApiResource::erase::<EmbeddedSchema>(&());
        self.with_retries("embeddedschemas", health, move || {
            let api = Api::<DeepObject>::all_with(client.clone(), &resource);
            watch_deep(api, watcher::Config::default(), identity)
        })
    }

    /// One of Etch's own webhook configurations.
    pub fn watch_webhook_configuration(
        &self,
        which: WebhookConfiguration,
    ) -> impl Stream<Item = Event<DynamicObject>> + Send + use<> {
        let health = WatchHealth::default();
        let client = self.paced_client(&health);
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "");
        let resource = ApiResource::from_gvk_with_plural(&kind, which.plural());
        self.with_retries("webhookconfigurations", health, move || {
            let api = Api::<DeepObject>::all_with(client.clone(), &resource);
            let config = watcher::Config::default().fields(&format!("metadata.name={CONFIGURATION}"));
            watch_deep(api, config, identity)
        })
    }

    /// One object that facts are taken from, and the HTTP status of each attempt that fails, if it has one.
    pub fn watch_fact(
        &self,
        object: &FactObject,
    ) -> impl Stream<Item = Result<Event<DynamicObject>, Option<u16>>> + Send + use<> {
        let health = WatchHealth::default();
        let client = self.paced_client(&health);
        let FactObject { group, version, resource, namespace, name } = object.clone();
        let kind = GroupVersionKind { group, version, kind: String::new() };
        let resource = ApiResource::from_gvk_with_plural(&kind, &resource);
        attempts("facts", self.server.clone(), health, self.relists.subscribe(), move || {
            let api = match &namespace {
                Some(namespace) => Api::<DeepObject>::namespaced_with(client.clone(), namespace, &resource),
                None => Api::<DeepObject>::all_with(client.clone(), &resource),
            };
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            watch_deep(api, config, identity)
        })
    }

    /// Makes these watchers list everything again: a watch from a resource version that a
    /// restored etcd has not reached yet opens, and shows nothing.
    pub fn relist(&self) {
        self.relists.send_replace(());
    }

    /// Continues through every failure of the watchers that `start` makes, after a wait that grows.
    pub(super) fn with_retries<K, F>(
        &self,
        kind: &'static str,
        health: WatchHealth,
        start: F,
    ) -> impl Stream<Item = Event<K>> + Send + use<K, F>
    where
        K: Send + 'static,
        F: Fn() -> BoxStream<'static, watcher::Result<Event<K>>> + Send + 'static,
    {
        with_retries(kind, self.server.clone(), health, self.relists.subscribe(), start)
    }

    pub(super) fn paced_client(&self, health: &WatchHealth) -> kube::Client {
        let paced = Paced {
            client: self.client.clone(),
            metrics: self.metrics.clone(),
            last: Arc::default(),
            health: health.clone(),
        };
        kube::Client::new(tower::service_fn(move |request| paced.clone().send(request)), "default")
    }
}

/// kube-runtime's watcher of objects that users may nest to any depth, each read as what is made of it.
fn watch_deep<const METADATA: bool, K: Send + 'static>(
    api: Api<Deep<METADATA>>,
    config: watcher::Config,
    made: fn(DynamicObject) -> K,
) -> BoxStream<'static, watcher::Result<Event<K>>> {
    let shallow = move |event| match event {
        Event::Init => Event::Init,
        Event::InitApply(Deep(object)) => Event::InitApply(made(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(Deep(object)) => Event::Apply(made(object)),
        Event::Delete(Deep(object)) => Event::Delete(made(object)),
    };
    watch(api, config).map(move |event| event.map(shallow)).boxed()
}

fn with_retries<K: Send + 'static>(
    kind: &'static str,
    server: Server,
    health: WatchHealth,
    relists: watch_channel::Receiver<()>,
    start: impl Fn() -> BoxStream<'static, watcher::Result<Event<K>>> + Send + 'static,
) -> impl Stream<Item = Event<K>> + Send {
    attempts(kind, server, health, relists, start).filter_map(|attempt| ready(attempt.ok()))
}

/// The same with the HTTP status of each failure, if it has one. The wait follows when more is asked for.
fn attempts<K: Send + 'static>(
    kind: &'static str,
    server: Server,
    health: WatchHealth,
    relists: watch_channel::Receiver<()>,
    start: impl Fn() -> BoxStream<'static, watcher::Result<Event<K>>> + Send + 'static,
) -> impl Stream<Item = Result<Event<K>, Option<u16>>> + Send {
    let backoff = Backoff::new(FIRST_WAIT, LAST_WAIT);
    let inner = start();
    let state =
        RetryingWatcher { inner, start, backoff, lists: true, failed: None, kind, server, health, relists };
    unfold(state, |mut state| async move { Some((state.next().await, state)) })
}

/// An attempt that failed.
struct Failed {
    /// How long to wait before the next one.
    wait: Duration,
    /// Whether a new watcher has to be started.
    is_over: bool,
}

struct RetryingWatcher<K, F> {
    inner: BoxStream<'static, watcher::Result<Event<K>>>,
    start: F,
    backoff: Backoff,
    /// Whether a list is under way: then an answer is due.
    lists: bool,
    /// What the next attempt waits for.
    failed: Option<Failed>,
    kind: &'static str,
    server: Server,
    health: WatchHealth,
    /// Changes when everything must be listed again.
    relists: watch_channel::Receiver<()>,
}

impl<K, F: Fn() -> BoxStream<'static, watcher::Result<Event<K>>>> RetryingWatcher<K, F> {
    async fn next(&mut self) -> Result<Event<K>, Option<u16>> {
        if let Some(Failed { wait, is_over }) = self.failed.take() {
            sleep(wait).await;
            if is_over {
                self.restart();
            }
        }
        let next = loop {
            let Self { inner, lists, relists, .. } = self;
            let next = async {
                match lists {
                    true => timeout(DEADLINE, inner.next()).await.ok(),
                    false => Some(inner.next().await),
                }
            };
            tokio::select! {
                next = next => break next,
                Ok(()) = relists.changed() => self.restart(),
            }
        };
        let error = match next {
            Some(Some(Ok(event))) => {
                match event {
                    Event::Init => self.lists = true,
                    Event::InitDone => self.lists = false,
                    Event::InitApply(_) => {}
                    Event::Apply(_) | Event::Delete(_) => self.health.works(),
                }
                if !self.lists {
                    self.backoff.works();
                }
                return Ok(event);
            }
            Some(Some(Err(error))) => Some(error),
            Some(None) | None => None,
        };
        let is_over = error.as_ref().is_none_or(is_expired_at_start);
        let error = error.map(|error| to_call_error(error, &self.server));
        let wait = self.backoff.failed(error.as_ref().and_then(CallError::retry_after));
        let why =
            error.as_ref().map_or("the API server did not answer a list".to_owned(), ToString::to_string);
        self.health.failed(&why);
        match &error {
            Some(error) => {
                warn!(watch = self.kind, %error, retry_in_seconds = wait.as_secs_f64(), "watch failed")
            }
            None => {
                warn!(
                    watch = self.kind,
                    retry_in_seconds = wait.as_secs_f64(),
                    "the API server did not answer a list"
                )
            }
        }
        self.failed = Some(Failed { wait, is_over });
        Err(error.and_then(|error| error.code()))
    }

    fn restart(&mut self) {
        self.inner = (self.start)();
        self.lists = true;
    }
}

fn is_expired_at_start(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// What may be logged of an error: kube's own texts quote the server's answer.
fn to_call_error(error: watcher::Error, server: &Server) -> CallError {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => {
            let body = serde_json::to_vec(&status).unwrap_or_default();
            CallError::Refused(Box::new(Refusal::read(status.code, None, &body)))
        }
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => match error {
            kube::Error::Service(late) if late.is::<Elapsed>() => {
                CallError::TimedOut(server.clone(), DEADLINE)
            }
            error => CallError::Connection(server.clone(), cause(&error)),
        },
        watcher::Error::NoResourceVersion => {
            CallError::malformed(serde_json::Error::missing_field("resourceVersion"))
        }
    }
}

/// The last watch of a path, and how long its successors wait.
struct Opened {
    at: Instant,
    backoff: Backoff,
}

/// What a watcher's client adds to that of the cluster: it counts requests, gives each a deadline for the
/// head of its answer (fact K4), and holds back a watch whose predecessor was closed at once.
#[derive(Clone)]
struct Paced {
    client: kube::Client,
    metrics: Arc<Metrics>,
    last: Arc<Mutex<Option<Opened>>>,
    health: WatchHealth,
}

impl Paced {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let verb = verb(request.method(), request.uri());
        if verb == RequestVerb::Watch {
            sleep(self.wait()).await;
        }
        let answer = timeout(DEADLINE, self.client.send(request))
            .await
            .unwrap_or_else(|late| Err(kube::Error::Service(late.into())));
        let status = answer.as_ref().ok().map(|response| response.status().as_u16());
        self.metrics.request(verb, outcome(status));
        if verb == RequestVerb::Watch {
            self.last.lock().get_or_insert_with(Opened::new).at = Instant::now();
            if answer.as_ref().is_ok_and(|response| response.status().is_success()) {
                self.health.opened();
            }
        }
        answer.map_err(Into::into)
    }

    /// How long to wait before a watch is opened.
    fn wait(&self) -> Duration {
        let mut last = self.last.lock();
        let Some(Opened { at, backoff }) = &mut *last else { return Duration::ZERO };
        if at.elapsed() < AT_ONCE {
            self.health.failed("the API server closed it as soon as it opened");
            return backoff.failed(None);
        }
        backoff.succeeded();
        Duration::ZERO
    }
}

impl Opened {
    fn new() -> Self {
        Self { at: Instant::now(), backoff: Backoff::new(FIRST_WAIT, LAST_WAIT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, ..Status::default() }))
    }

    /// A watcher that plays these results, and then nothing; how often it was started.
    fn played(
        runs: Vec<Vec<watcher::Result<Event<u8>>>>,
    ) -> (impl Stream<Item = Event<u8>>, Arc<Mutex<usize>>) {
        let started = Arc::new(Mutex::new(0));
        let (runs, count) = (Mutex::new(runs.into_iter()), started.clone());
        let relists = watch_channel::channel(()).1;
        let stream = with_retries("things", Server::default(), WatchHealth::default(), relists, move || {
            *count.lock() += 1;
            let run = runs.lock().next().unwrap_or_default();
            futures::stream::iter(run).chain(futures::stream::pending()).boxed()
        });
        (stream, started)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_in_time_is_not_called_unreachable() {
        let late = timeout(DEADLINE, std::future::pending::<()>()).await.expect_err("it is late");
        let failed = watcher::Error::WatchStartFailed(kube::Error::Service(late.into()));
        let error = to_call_error(failed, &Server::default());
        assert!(matches!(error, CallError::TimedOut(_, DEADLINE)), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_while_no_list_is_complete() {
        let failed = || [Ok(Event::Init), Err(watcher::Error::InitialListFailed(refused(503)))];
        let run = (0..6).flat_map(|_| failed()).chain([Ok(Event::Init), Ok(Event::InitDone)]).collect();
        let (stream, started) = played(vec![run]);
        let (mut stream, begin) = (std::pin::pin!(stream), Instant::now());
        while !matches!(stream.next().await, Some(Event::InitDone)) {}
        assert!(begin.elapsed() > Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(*started.lock(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_gone_over_http_is_listed_anew() {
        let gone = Err(watcher::Error::WatchStartFailed(refused(410)));
        let (stream, started) =
            played(vec![vec![Ok(Event::Init), Ok(Event::InitDone), gone], vec![Ok(Event::Init)]]);
        let events: Vec<_> = stream.take(3).collect().await;
        assert!(matches!(events[..], [Event::Init, Event::InitDone, Event::Init]), "{events:?}");
        assert_eq!(*started.lock(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_without_an_answer_is_begun_anew() {
        let (stream, started) =
            played(vec![vec![Ok(Event::Init)], vec![Ok(Event::Init), Ok(Event::InitDone)]]);
        let events: Vec<_> = stream.take(3).collect().await;
        assert!(matches!(events[..], [Event::Init, Event::Init, Event::InitDone]), "{events:?}");
        assert_eq!(*started.lock(), 2);
    }
}
