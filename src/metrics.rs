//! The metrics; alerts and dashboards rely on their names.
//! No label may grow with the number of objects, or hold a value of one (law 9).

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use etch_admission::admission_review::Asked;
use etch_core::object_state::StateKind;
use etch_core::plan::counted::WriteOutcome;
use etch_core::request::counted::{RequestOutcome, RequestVerb};
use etch_core::words::words;

/// The counters of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Objects processed, by outcome.
    objects: Family<ObjectLabels, Counter>,
    /// Writes to objects, by outcome.
    writes: Family<WriteLabels, Counter>,
    /// Requests to the API server, by verb and outcome.
    pub requests: Family<RequestLabels, Counter>,
    /// How long passes took, in seconds.
    pub pass_duration: Histogram,
    /// Objects of a CRD that do not hold their defaults, or may not, those that are ignored or being deleted
    /// included.
    pub phantom: Family<CrdLabels, Gauge>,
    /// 1 for the reason of each CRD's `DefaultsPersisted`.
    states: Family<StateLabels, Gauge>,
    /// The reasons that `states` shows, so that there is one for each CRD.
    reasons: Mutex<BTreeMap<String, &'static str>>,
    /// CRDs whose objects Etch does not write because a policy has paused writes.
    pub paused: Gauge,
    /// CRDs whose objects Etch does not write any more because a write lost owners, and their names.
    owners_lost: Gauge,
    owners_lost_of: Mutex<BTreeSet<String>>,
    /// Policies with values that this version does not support.
    pub unreadable_policies: Gauge,
    /// Writes under way.
    pub in_flight: Gauge,
    /// Whether this process leads.
    pub leader: Gauge,
    /// Admission requests, by schema, operation and outcome.
    reviews: Family<ReviewLabels, Counter>,
    /// How long admission requests took, in seconds.
    pub review_duration: Histogram,
    /// When the certificate for admission expires, in seconds since 1970; 0 where there is none.
    pub certificate_expiry: Gauge,
    /// How often the certificate for admission was read and could not be used, or could not be written.
    pub certificate_failures: Counter,
}

words! {
    /// The outcome of an admission request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
    pub enum ReviewOutcome {
        /// It was allowed.
        Allowed,
        /// It was allowed, and something was set in its object.
        Changed,
        /// It was allowed with a warning.
        Warned,
        /// It was refused.
        Denied,
        /// The request was not an AdmissionReview.
        Malformed,
        /// It took too long.
        TimedOut,
        /// There were too many at once.
        Overloaded,
        /// The review itself failed.
        Failed,
    }
}

/// See [`Metrics::object`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    outcome: &'static str,
}

/// See [`Metrics::write`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    outcome: &'static str,
}

/// See [`Metrics::reviewed`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    schema: String,
    operation: &'static str,
    outcome: ReviewOutcome,
}

/// See [`Metrics::requests`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// What was asked.
    pub verb: &'static str,
    /// What was answered.
    pub outcome: &'static str,
}

/// See [`Metrics::phantom`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CrdLabels {
    /// The CRD's name.
    pub crd: String,
}

/// See [`Metrics::state`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    crd: String,
    reason: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("etch");
        let all = &mut registry;
        let mut metrics = Self {
            objects: registered(all, "objects", "Objects processed, by outcome", Family::default()),
            writes: registered(all, "writes", "Writes to objects, by outcome", Family::default()),
            requests: registered(
                all,
                "requests",
                "Requests to the API server, by verb and outcome",
                Family::default(),
            ),
            pass_duration: seconds(
                all,
                "pass_duration",
                "How long sweeps over all objects of a CRD took",
                Histogram::new(exponential_buckets(0.05, 4.0, 10)),
            ),
            phantom: registered(
                all,
                "phantom_objects",
                "Objects of a CRD whose defaults etcd lacks or may lack",
                Family::default(),
            ),
            states: registered(
                all,
                "crd_state",
                "1 for the reason of the condition DefaultsPersisted of a CRD",
                Family::default(),
            ),
            reasons: Mutex::default(),
            paused: registered(
                all,
                "paused",
                "CRDs whose objects Etch does not write because a policy has paused writes",
                Gauge::default(),
            ),
            owners_lost: registered(
                all,
                "owners_lost",
                "CRDs whose objects Etch does not write any more because a write lost field owners",
                Gauge::default(),
            ),
            owners_lost_of: Mutex::default(),
            unreadable_policies: registered(
                all,
                "unreadable_policies",
                "DefaultsPolicies with values that this version of Etch does not support",
                Gauge::default(),
            ),
            in_flight: registered(all, "writes_in_flight", "Writes to objects in flight", Gauge::default()),
            leader: registered(all, "leader", "Whether this replica leads: 1 or 0", Gauge::default()),
            reviews: registered(
                all,
                "admission_reviews",
                "Admission requests, by schema, operation and outcome",
                Family::default(),
            ),
            review_duration: seconds(
                all,
                "admission_review_duration",
                "How long admission requests took",
                // From a quarter of a millisecond to four seconds: a webhook's deadline is three.
                Histogram::new(exponential_buckets(0.00025, 2.0, 15)),
            ),
            certificate_expiry: seconds(
                all,
                "admission_certificate_expiry_timestamp",
                "When the admission certificate expires, since 1970; 0 if there is none",
                Gauge::default(),
            ),
            certificate_failures: registered(
                all,
                "admission_certificate_failures",
                "How often Etch could not use or write the admission certificate",
                Counter::default(),
            ),
            registry,
        };
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        metrics.registry.register("build", "The version of Etch", build);
        // Starts at zero, or Prometheus would not see the first of each as an increase.
        for kind in StateKind::ALL {
            drop(metrics.objects.get_or_create(&ObjectLabels { outcome: kind.as_str() }));
        }
        for outcome in WriteOutcome::ALL {
            drop(metrics.writes.get_or_create(&WriteLabels { outcome: outcome.as_str() }));
        }
        for outcome in ReviewOutcome::ALL {
            let labels = ReviewLabels { schema: "*".to_owned(), operation: "CREATE", outcome: *outcome };
            drop(metrics.reviews.get_or_create(&labels));
        }
        metrics
    }
}

/// Registers a metric. A counter's name gets `_total` when it is shown.
fn registered<M: Metric + Clone>(all: &mut Registry, name: &str, help: &str, metric: M) -> M {
    all.register(name, help, metric.clone());
    metric
}

/// Registers a metric of seconds, which is added to its name.
fn seconds<M: Metric + Clone>(all: &mut Registry, name: &str, help: &str, metric: M) -> M {
    all.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Metrics {
    /// Counts one object.
    pub fn object(&self, state: StateKind) {
        self.objects.get_or_create(&ObjectLabels { outcome: state.as_str() }).inc();
    }

    /// Counts one write to an object.
    pub fn write(&self, outcome: WriteOutcome) {
        self.writes.get_or_create(&WriteLabels { outcome: outcome.as_str() }).inc();
    }

    /// Counts one admission request, by the name of the schema that was asked.
    pub fn reviewed(&self, schema: &str, operation: &'static str, outcome: ReviewOutcome) {
        self.reviews.get_or_create(&ReviewLabels { schema: schema.to_owned(), operation, outcome }).inc();
    }

    /// Removes the admission requests of a schema that is gone.
    pub fn forget_reviews(&self, schema: &str) {
        for operation in Asked::OPERATIONS {
            for outcome in ReviewOutcome::ALL {
                let labels = ReviewLabels { schema: schema.to_owned(), operation, outcome: *outcome };
                self.reviews.remove(&labels);
            }
        }
    }

    /// Counts one request.
    pub fn request(&self, verb: RequestVerb, outcome: RequestOutcome) {
        let (verb, outcome) = (verb.as_str(), outcome.as_str());
        self.requests.get_or_create(&RequestLabels { verb, outcome }).inc();
    }

    /// Sets how many objects of a CRD do not hold their defaults.
    pub fn phantom_objects(&self, crd: &str, count: u64) {
        let labels = CrdLabels { crd: crd.to_owned() };
        self.phantom.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Removes that gauge: the objects are not counted.
    pub fn forget_phantom_objects(&self, crd: &str) {
        self.phantom.remove(&CrdLabels { crd: crd.to_owned() });
    }

    /// Sets which reason the condition of a CRD gives.
    pub fn state(&self, crd: &str, reason: &'static str) {
        let mut reasons = self.reasons.lock();
        if let Some(before) = reasons.insert(crd.to_owned(), reason)
            && before != reason
        {
            self.states.remove(&StateLabels { crd: crd.to_owned(), reason: before });
        }
        self.states.get_or_create(&StateLabels { crd: crd.to_owned(), reason }).set(1);
    }

    /// Sets whether the objects of a CRD are not written any more because a write lost owners.
    pub fn owners_lost(&self, crd: &str, are_lost: bool) {
        let mut crds = self.owners_lost_of.lock();
        match are_lost {
            true => drop(crds.insert(crd.to_owned())),
            false => drop(crds.remove(crd)),
        }
        self.owners_lost.set(i64::try_from(crds.len()).unwrap_or(i64::MAX));
    }

    /// Removes a CRD.
    pub fn forget(&self, crd: &str) {
        self.forget_phantom_objects(crd);
        self.owners_lost(crd, false);
        let before = self.reasons.lock().remove(crd);
        if let Some(reason) = before {
            self.states.remove(&StateLabels { crd: crd.to_owned(), reason });
        }
    }

    /// Removes all CRDs: only the leader counts them.
    pub fn forget_all(&self) {
        self.phantom.clear();
        self.owners_lost_of.lock().clear();
        for gauge in [&self.paused, &self.owners_lost, &self.unreadable_policies] {
            gauge.set(0);
        }
        self.reasons.lock().clear();
        self.states.clear();
    }

    /// All of it in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        text.lines().filter(|line| line.starts_with(start)).collect()
    }

    #[test]
    fn a_crd_has_one_reason_at_a_time() {
        let metrics = Metrics::default();
        metrics.state("a.example.com", "InProgress");
        metrics.state("a.example.com", "AllPersisted");
        metrics.state("b.example.com", "Forbidden");
        let text = metrics.text();
        let expected = [
            r#"etch_crd_state{crd="a.example.com",reason="AllPersisted"} 1"#,
            r#"etch_crd_state{crd="b.example.com",reason="Forbidden"} 1"#,
        ];
        let mut found = lines(&text, "etch_crd_state{");
        found.sort_unstable();
        assert_eq!(found, expected);
        metrics.forget("b.example.com");
        assert_eq!(lines(&metrics.text(), "etch_crd_state{"), expected[..1]);
        metrics.phantom_objects("a.example.com", 3);
        metrics.forget_all();
        let text = metrics.text();
        assert!(
            lines(&text, "etch_crd_state{").is_empty() && lines(&text, "etch_phantom_objects{").is_empty()
        );
    }

    #[test]
    fn crds_whose_owners_were_lost_are_counted_until_they_are_written_again_or_gone() {
        let metrics = Metrics::default();
        let shown = || {
            let text = metrics.text();
            lines(&text, "etch_owners_lost ").concat()
        };
        assert_eq!(shown(), "etch_owners_lost 0");
        ["a", "b", "b"].iter().for_each(|crd| metrics.owners_lost(crd, true));
        assert_eq!(shown(), "etch_owners_lost 2");
        metrics.owners_lost("a", false);
        metrics.forget("b");
        assert_eq!(shown(), "etch_owners_lost 0");
        metrics.owners_lost("a", true);
        metrics.forget_all();
        assert_eq!(shown(), "etch_owners_lost 0");
    }

    #[test]
    fn counters_are_shown_before_they_count() {
        let metrics = Metrics::default();
        assert!(metrics.text().contains(r#"etch_writes_total{outcome="Gone"} 0"#), "{}", metrics.text());
        metrics.write(WriteOutcome::Gone);
        assert!(metrics.text().contains(r#"etch_writes_total{outcome="Gone"} 1"#));
    }
}
