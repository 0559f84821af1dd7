//! When the certificates of admission are renewed, where Etch makes them itself.
//! Only times count here.
//!
//! A signer, which is an authority of Etch's own, signs the certificate that replicas present. API servers
//! trust the authorities in the webhooks' `caBundle`. So that no request fails while either is renewed:
//!
//! 1. A new signer is trusted first, and for some time, before the certificate that it signs is presented.
//! 2. Former authorities stay trusted for as long as they are valid: a replica that sees a new certificate
//!    late is trusted.

use std::time::Duration;

use jiff::Timestamp;

/// The longest time for which API servers are given to see a new authority in the webhooks. They watch them,
/// so it takes them a second or less.
const SETTLED: Duration = Duration::from_secs(60);
/// How far the clocks of API servers may be behind.
const SKEW: Duration = Duration::from_secs(3_600);
/// How often times are looked at, at least: a clock may be set, and a machine be suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// How many certificates an authority sees come and go.
const LEAVES: u32 = 4;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub from: Timestamp,
    /// It has ended then.
    pub until: Timestamp,
}

/// How long certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// One that replicas present.
    pub leaf: Duration,
    /// An authority.
    pub authority: Duration,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The authority whose key is there too.
    pub signer: Option<Validity>,
    /// The certificate that replicas present, where it is usable: its key is there, the name is right, and
    /// one of the authorities has signed it.
    pub leaf: Option<Leaf>,
    /// The other authorities.
    pub former: Vec<Validity>,
    /// Whether there is more among the authorities: what Etch cannot read, or what is not its own.
    pub has_foreign: bool,
}

/// The certificate that replicas present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// From when until when.
    pub validity: Validity,
    /// Whether the signer has signed it; else a former authority has.
    pub is_by_signer: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet.
    Nothing,
    /// Authorities that have ended, and what is foreign, are taken out.
    Tidy,
    /// The signer signs a new leaf.
    Leaf,
    /// A new signer is made. The leaf stays as it is.
    Signer,
    /// A new signer is made, and signs a new leaf: there is none that could stay.
    Both,
}

/// What is to be done now, and when to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is to be done.
    pub step: Step,
    /// There is nothing that could be presented until it is done.
    pub is_urgent: bool,
    /// When to look again, unless something changes sooner.
    pub wait: Duration,
}

/// Decides by what there is. `trusted_for` is how long API servers are known to trust the signer.
pub fn decide(held: &Held, trusted_for: Option<Duration>, now: Timestamp, lifetimes: &Lifetimes) -> Decision {
    let signer = held.signer.filter(|signer| !signer.has_ended(now));
    let leaf = held.leaf.filter(|leaf| !leaf.validity.has_ended(now));
    let left = lifetimes.settled().saturating_sub(trusted_for.unwrap_or_default());
    let is_settled = trusted_for.is_some() && left.is_zero();
    let step = match (signer, leaf) {
        (None, None) => Step::Both,
        (Some(signer), None) if signer.is_due(now) => Step::Both,
        (Some(_), None) => Step::Leaf,
        (None, Some(_)) => Step::Signer,
        (Some(signer), Some(_)) if signer.is_due(now) => Step::Signer,
        // A client that trusts the certificate in use trusts the next one as well.
        (Some(_), Some(leaf)) if leaf.is_by_signer && leaf.validity.is_due(now) => Step::Leaf,
        (Some(_), Some(leaf)) if !leaf.is_by_signer && is_settled => Step::Leaf,
        _ if held.has_foreign || held.former.iter().any(|former| former.has_ended(now)) => Step::Tidy,
        _ => Step::Nothing,
    };
    let times = signer.iter().map(|signer| signer.renewal());
    let times = times.chain(leaf.iter().flat_map(|leaf| [leaf.validity.renewal(), leaf.validity.until]));
    let times = times.chain(held.former.iter().map(|former| former.until));
    let waits = times.filter_map(|time| Duration::try_from(time.duration_since(now)).ok());
    let settling = trusted_for.map(|_| left);
    let wait = waits.chain(settling).filter(|wait| !wait.is_zero()).min();
    let wait = wait.unwrap_or(LONGEST_WAIT).clamp(SHORTEST_WAIT, LONGEST_WAIT);
    Decision { step, is_urgent: leaf.is_none(), wait }
}

impl Validity {
    /// That of a certificate which is made now, to be valid for so long: for clocks that are behind it begins
    /// earlier.
    pub fn new(now: Timestamp, lifetime: Duration) -> Self {
        let from = now.checked_sub((lifetime / 24).min(SKEW)).unwrap_or(now);
        Self { from, until: now.checked_add(lifetime).unwrap_or(Timestamp::MAX) }
    }

    /// The part of it that lies within another.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }

    /// When two thirds of it are over.
    fn renewal(self) -> Timestamp {
        let third = self.until.duration_since(self.from) / 3;
        self.until.checked_sub(third).unwrap_or(self.until)
    }

    /// Whether it is to be renewed. One that begins later was made by a clock that was ahead, or this one is
    /// behind: a new one is good in both cases.
    fn is_due(self, now: Timestamp) -> bool {
        now < self.from || now >= self.renewal()
    }

    /// Whether it is over.
    pub fn has_ended(self, now: Timestamp) -> bool {
        now >= self.until
    }
}

impl Lifetimes {
    /// Those by which a certificate that is presented is valid for so long.
    pub fn of(leaf: Duration) -> Self {
        Self { leaf, authority: leaf.saturating_mul(LEAVES) }
    }

    /// How long a new signer is trusted before it counts.
    fn settled(&self) -> Duration {
        (self.leaf / 10).min(SETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;
    const LIFETIMES: Lifetimes =
        Lifetimes { leaf: Duration::from_secs(240 * HOUR), authority: Duration::from_secs(960 * HOUR) };

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3_600).expect("a time")
    }

    fn from_until(from: i64, until: i64) -> Validity {
        Validity { from: at(from), until: at(until) }
    }

    fn leaf(from: i64, until: i64) -> Option<Leaf> {
        Some(Leaf { validity: from_until(from, until), is_by_signer: true })
    }

    fn leaf_of_former(from: i64, until: i64) -> Option<Leaf> {
        Some(Leaf { validity: from_until(from, until), is_by_signer: false })
    }

    fn held(signer: Option<Validity>, leaf: Option<Leaf>) -> Held {
        Held { signer, leaf, former: Vec::new(), has_foreign: false }
    }

    fn decided(held: &Held, trusted_for: Option<u64>, now: i64) -> Decision {
        decide(held, trusted_for.map(Duration::from_secs), at(now), &LIFETIMES)
    }

    #[test]
    fn each_step_has_its_time() {
        let signer = Some(from_until(0, 960));
        for (what, held, trusted_for, now, step, is_urgent) in [
            ("nothing is there", held(None, None), None, 0, Step::Both, true),
            ("the leaf is not usable", held(signer, None), None, 1, Step::Leaf, true),
            ("nor will the signer be for long", held(signer, None), None, 700, Step::Both, true),
            ("all is well", held(signer, leaf(0, 240)), None, 159, Step::Nothing, false),
            ("two thirds of the leaf are over", held(signer, leaf(0, 240)), None, 160, Step::Leaf, false),
            ("the leaf has ended", held(signer, leaf(0, 240)), None, 240, Step::Leaf, true),
            ("the leaf ended long ago", held(signer, leaf(0, 240)), Some(90), 500, Step::Leaf, true),
            (
                "almost two thirds of the signer",
                held(signer, leaf(600, 840)),
                None,
                639,
                Step::Nothing,
                false,
            ),
            (
                "two thirds of the signer are over",
                held(signer, leaf(600, 840)),
                None,
                640,
                Step::Signer,
                false,
            ),
            ("the signer has ended", held(signer, leaf(900, 1140)), Some(90), 960, Step::Signer, false),
            ("all has ended", held(signer, leaf(0, 240)), Some(90), 960, Step::Both, true),
            ("the signer has no key", held(None, leaf_of_former(0, 240)), None, 1, Step::Signer, false),
            ("a new signer", held(signer, leaf_of_former(-200, 40)), None, 1, Step::Nothing, false),
            ("in the webhooks", held(signer, leaf_of_former(-200, 40)), Some(59), 1, Step::Nothing, false),
            ("for a minute", held(signer, leaf_of_former(-200, 40)), Some(60), 1, Step::Leaf, false),
            ("nobody trusts it in time", held(signer, leaf_of_former(-200, 40)), None, 40, Step::Leaf, true),
        ] {
            let decision = decided(&held, trusted_for, now);
            assert_eq!((decision.step, decision.is_urgent), (step, is_urgent), "{what}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_takes_no_certificate_away() {
        // All of it begins in an hour.
        let ahead = held(Some(from_until(1, 961)), leaf(1, 241));
        let decision = decided(&ahead, Some(90), 0);
        assert_eq!((decision.step, decision.is_urgent), (Step::Signer, false));
        // The next signer, and what was there before: that one waits until it is trusted.
        let made = Validity::new(at(0), LIFETIMES.authority);
        let mut next = held(Some(made), leaf_of_former(1, 241));
        next.former = vec![from_until(1, 961)];
        assert_eq!(decided(&next, None, 0).step, Step::Nothing);
        assert_eq!(decided(&next, Some(60), 0).step, Step::Leaf);
        // What is made then is not made again, also by a clock that is behind by less than an hour.
        let leaf = Validity::new(at(0), LIFETIMES.leaf).within(made);
        next.leaf = Some(Leaf { validity: leaf, is_by_signer: true });
        for now in [0, -1] {
            assert_eq!(decided(&next, None, now).step, Step::Nothing);
        }
        assert_eq!(decided(&next, None, -2).step, Step::Signer);
    }

    #[test]
    fn what_has_ended_or_is_foreign_is_taken_out_when_nothing_else_is_to_be_done() {
        let mut all = held(Some(from_until(0, 960)), leaf(0, 240));
        all.former = vec![from_until(-600, 40)];
        assert_eq!(decided(&all, None, 39).step, Step::Nothing);
        assert_eq!(decided(&all, None, 40).step, Step::Tidy);
        assert_eq!(decided(&all, None, 160).step, Step::Leaf);
        let foreign = Held { has_foreign: true, ..held(Some(from_until(0, 960)), leaf(0, 240)) };
        assert_eq!(decided(&foreign, None, 1).step, Step::Tidy);
    }

    #[test]
    fn the_next_look_is_when_something_is_due_and_within_the_hour() {
        let mut all = held(Some(from_until(0, 960)), leaf(0, 240));
        assert_eq!(decided(&all, None, 100).wait, LONGEST_WAIT);
        let just_before = at(160).checked_sub(Duration::from_secs(7)).expect("a time");
        assert_eq!(decide(&all, None, just_before, &LIFETIMES).wait, Duration::from_secs(7));
        all.former = vec![Validity { from: at(-9), until: just_before }];
        let a_bit_sooner = just_before.checked_sub(Duration::from_millis(1)).expect("a time");
        assert_eq!(decide(&all, None, a_bit_sooner, &LIFETIMES).wait, SHORTEST_WAIT);
        let waits = held(Some(from_until(0, 960)), leaf_of_former(-200, 40));
        assert_eq!(decided(&waits, Some(20), 1).wait, Duration::from_secs(40));
        assert_eq!(decided(&waits, None, 1).wait, LONGEST_WAIT);
    }

    #[test]
    fn a_leaf_ends_with_its_signer_and_short_lives_settle_sooner() {
        let signer = Validity::new(at(0), LIFETIMES.authority);
        assert_eq!(signer, from_until(-1, 960));
        assert_eq!(Validity::new(at(900), LIFETIMES.leaf).within(signer), from_until(899, 960));
        assert_eq!(Validity::new(at(-3), LIFETIMES.leaf).within(signer), from_until(-1, 237));
        let short = Lifetimes::of(Duration::from_secs(50));
        assert_eq!((short.authority.as_secs(), short.settled().as_secs()), (200, 5));
        assert_eq!(
            Validity::new(at(0), short.leaf).from,
            at(0).checked_sub(short.leaf / 24).expect("a time")
        );
    }
}
