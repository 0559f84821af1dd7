//! Leadership by a Lease, with client-go's times: when to renew it, when to stop, and when to take it over.
//!
//! No clock of another machine is trusted. A replica measures both times by its own clock: it leads for
//! [`DEADLINE`] after the beginning of its last renewal, and takes over a lease that it has not seen change
//! for [`DURATION`]. So no two replicas lead at once while their clocks run at the same speed within half.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use kube_structural_schema::json::Json;

/// The name of the Lease.
pub const NAME: &str = "etch";
/// How long others wait after the last change that they saw.
pub const DURATION: Duration = Duration::from_secs(15);
/// How long the holder leads without a renewal (client-go: `renewDeadline`); shorter than [`DURATION`], so
/// that it has stopped before another replica begins.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// How often the lease is renewed, or tried.
pub const PERIOD: Duration = Duration::from_secs(2);
/// How long one attempt may take.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// A Lease as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its resource version.
    pub resource_version: String,
    /// The identity of its holder; empty where it is free.
    pub holder: String,
    /// How long others have to respect it; [`DURATION`] if the lease does not set it.
    pub duration: Option<Duration>,
    /// The time of its last renewal, as it has it.
    pub renewed: Option<String>,
}

/// What to do with a Lease that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// There is none: create it.
    Create,
    /// It is free, run out, or held by this replica: replace it.
    Replace,
    /// Another replica holds it.
    Respect,
}

/// One replica's claim to a Lease.
#[derive(Clone, Debug)]
pub struct Claim {
    identity: String,
    seen: Option<Seen>,
    /// When the attempt began that is under way.
    began: Instant,
    /// When the attempt began by which the lease was taken or renewed last; none while it is not held.
    held: Option<Instant>,
    /// The times of renewals, of which the lease that is held has one: the last that was answered, and those
    /// after it.
    renewals: Vec<String>,
}

/// The lease as of its last observed change.
#[derive(Clone, Debug)]
struct Seen {
    resource_version: String,
    /// Whether another replica holds it.
    is_others: bool,
    /// How long it is to be respected from then on.
    duration: Duration,
    at: Instant,
}

impl Lease {
    /// What a claim reads of a Lease.
    pub fn read(lease: &Value) -> Self {
        let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            resource_version: text(&metadata["resourceVersion"]),
            holder: text(&spec["holderIdentity"]),
            duration: spec["leaseDurationSeconds"].as_u64().map(Duration::from_secs),
            renewed: spec["renewTime"].as_str().map(str::to_owned),
        }
    }
}

/// A new Lease; `now` is a `MicroTime`.
pub fn created(namespace: &str, name: &str, holder: &str, now: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": DURATION.as_secs(),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    })
}

/// The Lease that was read, as `holder` takes or renews it; an empty holder gives it up. `now` is a
/// `MicroTime`.
pub fn replaced(lease: &Json, holder: &str, seconds: u64, now: String) -> Json {
    let mut lease = lease.clone();
    let changes_hands = lease["spec"]["holderIdentity"] != holder;
    let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
    let spec = &mut lease["spec"];
    spec["holderIdentity"] = Value::from(holder);
    spec["leaseDurationSeconds"] = Value::from(seconds);
    spec["renewTime"] = Value::from(now.clone());
    if changes_hands && !holder.is_empty() {
        spec["acquireTime"] = Value::from(now);
        spec["leaseTransitions"] = Value::from(transitions + 1);
    }
    lease
}

impl Claim {
    /// A claim under an identity that no other process has.
    pub fn new(identity: &str, now: Instant) -> Self {
        Self { identity: identity.to_owned(), seen: None, began: now, held: None, renewals: Vec::new() }
    }

    /// The identity that it is made under.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether the lease is held, and was renewed in time.
    pub fn leads(&self, now: Instant) -> bool {
        self.held.is_some_and(|held| now < held + DEADLINE)
    }

    /// When to try next: a holder that cannot renew stops at its deadline, and a lease that runs out is
    /// taken.
    pub fn wait(&self, now: Instant) -> Duration {
        let left = match self.held {
            Some(held) => (held + DEADLINE).saturating_duration_since(now),
            None => self.until_run_out(now).unwrap_or(PERIOD),
        };
        left.min(PERIOD)
    }

    /// How long to respect the lease that was seen last; `None` if it is unknown, or has run out.
    fn until_run_out(&self, now: Instant) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        let left = (seen.at + seen.duration).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Begins an attempt to take or to renew it: a read, and the write that follows. It may take so long.
    pub fn begin(&mut self, now: Instant) -> Duration {
        self.began = now;
        match self.held {
            Some(held) => ATTEMPT_TIMEOUT.min((held + DEADLINE).saturating_duration_since(now)),
            None => {
                // Others may have renewed it since.
                self.renewals.clear();
                ATTEMPT_TIMEOUT
            }
        }
    }

    /// Whether a lease that is held is not as it was written last, or one that was seen is older than before:
    /// etcd may have been restored to an earlier state.
    pub fn is_set_back(&self, lease: Option<&Lease>) -> bool {
        let renewed = lease.and_then(|lease| lease.renewed.as_ref());
        let is_other = !self.renewals.is_empty() && !self.renewals.iter().any(|one| Some(one) == renewed);
        let revision = |version: &str| version.parse::<u64>().ok();
        let seen = self.seen.as_ref().and_then(|seen| revision(&seen.resource_version));
        is_other
            || lease.and_then(|lease| revision(&lease.resource_version)).is_some_and(|now| Some(now) < seen)
    }

    /// The lease was read, or there is none.
    pub fn read(&mut self, lease: Option<&Lease>, now: Instant) -> Take {
        let Some(lease) = lease else { return Take::Create };
        let is_others = !lease.holder.is_empty() && lease.holder != self.identity;
        let known = self.seen.take().filter(|seen| seen.resource_version == lease.resource_version);
        self.seen = Some(known.unwrap_or_else(|| Seen {
            resource_version: lease.resource_version.clone(),
            is_others,
            duration: lease.duration.unwrap_or(DURATION),
            at: now,
        }));
        if is_others && self.until_run_out(now).is_some() {
            self.held = None;
            return Take::Respect;
        }
        Take::Replace
    }

    /// It is about to be written with this time of renewal.
    pub fn renews(&mut self, time: String) {
        self.renewals.push(time);
    }

    /// The write was answered: the lease is held since the attempt began.
    pub fn renewed(&mut self) {
        self.renewals.drain(..self.renewals.len().saturating_sub(1));
        self.held = Some(self.began);
    }

    /// The write met another one. Whether another replica has taken the lease: a change while this one held
    /// it shows in the next read.
    pub fn conflicted(&mut self, take: Take) -> bool {
        let is_taken = match take {
            Take::Create => true,
            Take::Replace => self.seen.as_ref().is_none_or(|seen| seen.is_others),
            Take::Respect => false,
        };
        self.held = self.held.filter(|_| !is_taken);
        is_taken
    }

    /// Gives the lease up: the leader's work has stopped.
    pub fn release(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    const SECOND: Duration = Duration::from_secs(1);

    fn lease(resource_version: &str, holder: &str) -> Lease {
        Lease {
            resource_version: resource_version.to_owned(),
            holder: holder.to_owned(),
            duration: Some(DURATION),
            renewed: Some(format!("renewal of {resource_version}")),
        }
    }

    fn leader() -> Claim {
        let mut claim = Claim::new("me", start());
        claim.begin(start());
        assert_eq!(claim.read(None, start()), Take::Create);
        claim.renews("renewal of 1".to_owned());
        claim.renewed();
        claim
    }

    #[test]
    fn a_holder_stops_at_its_deadline_though_the_last_attempt_failed_just_before() {
        let mut claim = leader();
        assert_eq!(claim.wait(start()), PERIOD);
        let late = start() + DEADLINE - SECOND;
        assert_eq!(claim.begin(late), SECOND);
        assert_eq!(claim.wait(late), SECOND);
        assert!(claim.leads(late) && !claim.leads(start() + DEADLINE));
    }

    #[test]
    fn a_renewal_counts_from_the_beginning_of_its_attempt() {
        let mut claim = leader();
        claim.begin(start() + PERIOD);
        assert_eq!(claim.read(Some(&lease("1", "me")), start() + PERIOD * 2), Take::Replace);
        claim.renewed();
        assert!(!claim.leads(start() + PERIOD + DEADLINE));
    }

    #[test]
    fn a_lease_of_another_is_taken_once_it_was_not_seen_to_change_for_its_duration() {
        let (mut claim, now) = (Claim::new("me", start()), start());
        assert_eq!(claim.read(Some(&lease("1", "other")), now), Take::Respect);
        assert_eq!(claim.read(Some(&lease("2", "other")), now + DURATION), Take::Respect, "it was renewed");
        let last = now + DURATION * 2 - SECOND;
        assert_eq!(claim.read(Some(&lease("2", "other")), last), Take::Respect);
        assert_eq!(claim.wait(last), SECOND, "not later than it runs out");
        assert_eq!(claim.read(Some(&lease("2", "other")), last + SECOND), Take::Replace);
        assert!(claim.conflicted(Take::Replace), "another was faster");
        assert!(!claim.leads(last + SECOND));
    }

    #[test]
    fn a_lease_that_is_free_or_says_how_short_it_lasts_is_taken_early() {
        let mut claim = Claim::new("me", start());
        assert_eq!(claim.read(Some(&lease("1", "")), start()), Take::Replace);
        let short = Lease { duration: Some(SECOND), ..lease("2", "other") };
        assert_eq!(claim.read(Some(&short), start()), Take::Respect);
        assert_eq!(claim.read(Some(&short), start() + SECOND), Take::Replace);
    }

    #[test]
    fn a_holder_stops_when_another_has_it_and_not_when_its_own_write_conflicts() {
        let mut claim = leader();
        claim.begin(start());
        assert_eq!(claim.read(Some(&lease("1", "me")), start()), Take::Replace);
        assert!(!claim.conflicted(Take::Replace) && claim.leads(start()));
        assert_eq!(claim.read(Some(&lease("3", "other")), start()), Take::Respect);
        assert!(!claim.leads(start()));
    }

    #[test]
    fn a_held_lease_with_none_of_its_renewals_is_set_back() {
        let mut claim = leader();
        assert!(!claim.is_set_back(Some(&lease("1", "me"))));
        claim.renews("renewal of 2".to_owned());
        assert!(!claim.is_set_back(Some(&lease("1", "me"))) && !claim.is_set_back(Some(&lease("2", "me"))));
        assert!(claim.is_set_back(Some(&lease("0", "me"))) && claim.is_set_back(None));
        claim.release();
        claim.begin(start());
        assert!(!claim.is_set_back(None), "it is not held");
    }

    #[test]
    fn a_lease_that_is_older_than_it_was_is_set_back_whoever_holds_it() {
        let mut claim = Claim::new("me", start());
        assert!(!claim.is_set_back(Some(&lease("9", "other"))), "no other was seen");
        claim.read(Some(&lease("9", "other")), start());
        assert!(
            !claim.is_set_back(Some(&lease("9", "other"))) && !claim.is_set_back(Some(&lease("10", "me")))
        );
        assert!(claim.is_set_back(Some(&lease("8", "other"))));
        claim.read(Some(&lease("8", "other")), start());
        assert!(!claim.is_set_back(Some(&lease("8", "other"))), "once");
    }
}
