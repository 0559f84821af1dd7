//! What can be counted, by names that are promised to alerts and dashboards.
//! It must not have a label that grows with the number of objects, nor hold a value of one.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The counters of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Objects looked at, by what became of them.
    pub objects: Family<ObjectLabels, Counter>,
    /// Requests to the API server, by verb and outcome.
    pub requests: Family<RequestLabels, Counter>,
    /// How long passes took, in seconds.
    pub pass_duration: Histogram,
    /// Objects of a CRD that do not hold their defaults, or may not.
    pub phantom: Family<CrdLabels, Gauge>,
    /// Writes under way.
    pub in_flight: Gauge,
    /// Whether this process is at work.
    pub leader: Gauge,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum ObjectOutcome {
    /// Nothing was missing.
    Stored,
    /// A write stored what was missing.
    Written,
    /// A write would do harm.
    Held,
    /// A write was refused.
    Rejected,
    /// It is gone, being deleted, or asked to be left alone.
    Skipped,
    /// A write is due and the policy forbids it.
    Due,
    /// Nothing is known yet.
    Unknown,
}

/// What was asked of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum RequestVerb {
    /// One object.
    Get,
    /// A page of objects.
    List,
    /// A watch was opened.
    Watch,
    /// Server-side apply, merge patch or JSON patch.
    Patch,
    /// A new object of ours: an access review, a Lease.
    Create,
    /// A replaced object of ours: a Lease.
    Update,
}

/// How the API server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum RequestOutcome {
    /// With success.
    Ok,
    /// 404: there is no such thing.
    NotFound,
    /// 409: somebody else has written.
    Conflict,
    /// 429 or 503: too much at once.
    Throttled,
    /// 401 or 403.
    Forbidden,
    /// Any other 4xx.
    Refused,
    /// Any other 5xx.
    ServerError,
    /// Not at all.
    NoAnswer,
}

/// See [`Metrics::objects`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ObjectLabels {
    /// What became of them.
    pub outcome: ObjectOutcome,
}

/// See [`Metrics::requests`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// What was asked.
    pub verb: RequestVerb,
    /// What was answered.
    pub outcome: RequestOutcome,
}

/// See [`Metrics::phantom`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CrdLabels {
    /// The CRD's name.
    pub crd: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("etch");
        let metrics = Self {
            objects: Family::default(),
            requests: Family::default(),
            pass_duration: Histogram::new(exponential_buckets(0.05, 4.0, 10)),
            phantom: Family::default(),
            in_flight: Gauge::default(),
            leader: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("objects", "Objects looked at, by what became of them", metrics.objects.clone());
        registry.register(
            "requests",
            "Requests to the API server, by verb and outcome",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "pass_duration",
            "How long sweeps over all objects of a CRD took",
            Unit::Seconds,
            metrics.pass_duration.clone(),
        );
        registry.register(
            "phantom_objects",
            "Objects of a CRD that do not hold their defaults in etcd, or may not",
            metrics.phantom.clone(),
        );
        registry.register("writes_in_flight", "Writes to objects under way", metrics.in_flight.clone());
        registry.register("leader", "Whether this process is at work: 1 or 0", metrics.leader.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts one object.
    pub fn object(&self, outcome: ObjectOutcome) {
        self.objects.get_or_create(&ObjectLabels { outcome }).inc();
    }

    /// Counts one request.
    pub fn request(&self, verb: RequestVerb, outcome: RequestOutcome) {
        self.requests.get_or_create(&RequestLabels { verb, outcome }).inc();
    }

    /// Says how many objects of a CRD do not hold their defaults.
    pub fn phantom_objects(&self, crd: &str, count: u64) {
        let labels = CrdLabels { crd: crd.to_owned() };
        self.phantom.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Forgets a CRD.
    pub fn forget(&self, crd: &str) {
        self.phantom.remove(&CrdLabels { crd: crd.to_owned() });
    }

    /// All of it in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
