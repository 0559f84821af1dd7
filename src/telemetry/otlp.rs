//! Traces over OTLP: the spans of the operator go to the collector that the environment names. It does not
//! hold up the operator: spans wait in a bounded queue, a separate thread sends them, and spans that do not
//! fit are dropped.

use std::error::Error;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Handle, Runtime};
use tracing::{debug, info, warn};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

use super::{Boxed, ENDPOINTS, variable};

/// How long a collector may take; the specification's default for `OTEL_EXPORTER_OTLP_TIMEOUT`.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same at the end of the process, which Kubernetes and Etch itself want to be soon.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest answer that is read. It holds a count and a sentence.
const ANSWER: usize = 64 * 1024;

/// The export of traces.
pub(super) struct Traces {
    provider: SdkTracerProvider,
    /// A runtime of its own: the thread that exports has none, and the operator's serves only the operator.
    runtime: Runtime,
}

impl Traces {
    /// Exports the queued spans, within a deadline.
    pub(super) fn end(self) {
        let (done, ended) = mpsc::channel();
        let provider = self.provider;
        thread::spawn(move || done.send(provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)));
        if !matches!(ended.recv_timeout(SHUTDOWN_TIMEOUT), Ok(Ok(()))) {
            debug!("could not export the last traces");
        }
        // A name that is still being looked up is not waited for.
        self.runtime.shutdown_background();
    }
}

/// The traces that the standard variables ask for; `None` if they ask for none.
///
/// # Errors
/// They ask for something that is not supported.
pub(super) fn from_environment() -> anyhow::Result<Option<(Boxed<Registry>, Traces)>> {
    let Some((name, endpoint)) = ENDPOINTS.iter().find_map(|name| Some((name, variable(name)?))) else {
        return Ok(None);
    };
    let is_off = |name, word| variable(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    if is_off("OTEL_SDK_DISABLED", "true") || is_off("OTEL_TRACES_EXPORTER", "none") {
        return Ok(None);
    }
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match variable(name).as_deref() {
            Some("http/protobuf") => break,
            None => {}
            Some(_) => bail!("{name} requires a protocol other than http/protobuf"),
        }
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("traces").enable_all().build();
    let runtime = runtime.context("a thread for traces")?;
    let builder = SpanExporter::builder().with_http();
    let builder = if endpoint.starts_with("https:") {
        let roots = HttpsConnectorBuilder::new().with_native_roots();
        let roots =
            roots.context("https needs CA certificates; set SSL_CERT_FILE to a file that contains them")?;
        builder.with_http_client(Client::new(&runtime, roots.https_only().enable_http1().build()))
    } else {
        builder.with_http_client(Client::new(&runtime, HttpConnector::new()))
    };
    // The error would quote the endpoint, in which there may be a password.
    let exporter =
        builder.build().map_err(|_| anyhow::anyhow!("cannot use {name} and the related variables"))?;
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("etch"))
        .with_context_activation(false)
        .with_error_events_to_status(false)
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| {
            metadata.target() == etch::operator::TRACED
                || (metadata.is_event() && metadata.target().starts_with("etch::"))
        }));
    Ok(Some((layer.boxed(), Traces { provider, runtime })))
}

/// Which process this is: by `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, and what they leave out.
fn resource() -> Resource {
    let wording = Resource::builder().build();
    let is_named = wording
        .get(&Key::from_static_str("service.name"))
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let ours = [
        ("service.name", Some("etch".to_owned()).filter(|_| !is_named)),
        ("service.version", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("service.instance.id", variable("HOSTNAME")),
    ];
    let missing = ours
        .into_iter()
        .filter(|(key, _)| *key == "service.name" || wording.get(&Key::from_static_str(key)).is_none());
    let missing = missing.filter_map(|(key, value)| Some(KeyValue::new(key, value?)));
    Resource::builder().with_attributes(missing).build()
}

/// Sends requests to the collector, and logs once when that fails.
#[derive(Debug)]
struct Client<C> {
    http: legacy::Client<C, Full<Bytes>>,
    runtime: Handle,
    failing: AtomicBool,
}

impl<C: Connect + Clone + Debug + Send + Sync + 'static> Client<C> {
    fn new(runtime: &Runtime, connector: C) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self { http, runtime: runtime.handle().clone(), failing: AtomicBool::new(false) }
    }

    /// Logs what changes: that it fails, and that it works again.
    fn log_change(&self, failure: Option<String>) {
        match (failure, &self.failing) {
            (Some(error), failing) if !failing.swap(true, Ordering::Relaxed) => {
                warn!(error, "cannot export traces; continuing without them");
            }
            (Some(error), _) => debug!(error, "cannot export traces"),
            (None, failing) if failing.swap(false, Ordering::Relaxed) => info!("exporting traces again"),
            (None, _) => {}
        }
    }
}

#[async_trait]
impl<C: Connect + Clone + Debug + Send + Sync + 'static> HttpClient for Client<C> {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.http.request(request.map(Full::new));
        let answer = async {
            let (parts, body) = sent.await?.into_parts();
            let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        };
        // tokio::time needs the runtime, too.
        let in_time = async { tokio::time::timeout(EXPORT_TIMEOUT, answer).await };
        let answer = self.runtime.spawn(in_time).await?.unwrap_or_else(|_| Err("no answer in time".into()));
        self.log_change(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answered {}", answer.status().as_u16())),
            Err(error) => Some(chain(error.as_ref())),
        });
        answer
    }
}

/// An error and its causes in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
