//! What the process records of itself: a log on standard error and, where built with the feature `otlp`,
//! traces. It must not let anything through that may quote objects: what kube logs is left out.

#[cfg(feature = "otlp")]
mod otlp;

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::commands::global::LogFormat;

/// A layer of the log or the traces, for a registry of spans.
type Boxed<S> = Box<dyn Layer<S> + Send + Sync>;

/// The log and the traces, until [`Telemetry::end`].
pub(crate) struct Telemetry {
    #[cfg(feature = "otlp")]
    traces: Option<otlp::Traces>,
}

impl Telemetry {
    /// Begins the log of a command.
    pub(crate) fn begin(format: LogFormat) -> Self {
        // What a command finds is its output.
        start(None, format, Level::WARN);
        Self {
            #[cfg(feature = "otlp")]
            traces: None,
        }
    }

    /// Begins the log of the operator, and its traces, where the environment has an endpoint for them.
    ///
    /// An operator without traces is better than none: what prevents their export is logged.
    #[cfg(feature = "otlp")]
    pub(crate) fn begin_operator(format: LogFormat) -> Self {
        let (layer, traces, error) = match otlp::from_environment() {
            Ok(Some((layer, traces))) => (Some(layer), Some(traces), None),
            Ok(None) => (None, None, None),
            Err(error) => (None, None, Some(error)),
        };
        start(layer, format, Level::INFO);
        if let Some(error) = error {
            tracing::warn!(error = format!("{error:#}"), "not exporting traces");
        }
        Self { traces }
    }

    /// Begins the log of the operator.
    #[cfg(not(feature = "otlp"))]
    pub(crate) fn begin_operator(format: LogFormat) -> Self {
        start(None, format, Level::INFO);
        if let Some(name) = ENDPOINTS.into_iter().find(|name| variable(name).is_some()) {
            tracing::warn!("not exporting traces: {name} is set, but this build lacks the feature otlp");
        }
        Self {}
    }

    /// Exports what is still waiting, for as long as that may take at the end.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// The standard variables that name a collector; the first that is set counts.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// A variable of the environment, if it is set and not empty, as the specification requires.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn start(traces: Option<Boxed<Registry>>, format: LogFormat, level: Level) {
    tracing_subscriber::registry().with(traces).with(log(format, level)).init();
}

fn log<S>(format: LogFormat, level: Level) -> Boxed<S>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    // kube's own events quote the server's answer, which may hold values of objects, and those of h2 show
    // frames.
    let is_quiet = filter_fn(|metadata| {
        let library = metadata.target().split("::").next().unwrap_or_default();
        !["kube", "kube_client", "kube_core", "kube_runtime", "h2"].contains(&library)
    });
    let filter =
        EnvFilter::builder().with_env_var("ETCH_LOG").with_default_directive(level.into()).from_env_lossy();
    // Not as directives: more specific ones in ETCH_LOG would override them.
    let filter = filter.and(is_quiet);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).with_filter(filter).boxed(),
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    }
}
