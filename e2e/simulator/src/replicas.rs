//! Two replicas of Etch and the Lease that decides which of them leads, on clocks of their own. The claims
//! are the operator's; what is here sends their requests, loses some of them, and stops a replica for a
//! while.

use std::time::{Duration, Instant};

use etch_core::engine::lease::{Claim, DURATION, Lease, Take};
use jiff::SignedDuration;

use super::dice::{Dice, Fate};
use super::etcd::Clock;
use super::sabotage::Sabotage;

/// How many replicas there are.
pub const REPLICAS: usize = 2;
/// How fast their clocks run, in thousandths: within the bound of the rule, and not far from it.
const SLOWEST: usize = 850;
const FASTEST: usize = 1200;
/// By how many seconds the times of day of two replicas differ, at most.
const SKEW: usize = 20;

/// All replicas, and the Lease on the API server.
#[derive(Clone, Debug)]
pub struct Replicas {
    lease: Option<Lease>,
    replicas: Vec<Replica>,
    /// Writes that were given up, and may still arrive.
    strays: Vec<Write>,
    started: usize,
    /// Whether the leader leads from now on, whatever time passes.
    is_settled: bool,
}

/// What an attempt may depend on.
pub struct Surroundings<'a> {
    /// What was written so far.
    pub clock: &'a mut Clock,
    /// What depends on chance.
    pub dice: &'a mut Dice,
    /// The true time.
    pub now: Instant,
    /// Whether requests are lost.
    pub has_faults: bool,
    /// The law that is broken on purpose.
    pub sabotage: Option<Sabotage>,
}

/// A replica begins to lead, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It begins.
    Leads(usize),
    /// It ends.
    Ends(usize),
}

#[derive(Clone, Debug)]
struct Replica {
    claim: Claim,
    clock: OwnClock,
    attempt: Option<Attempt>,
    /// When it tries next, by its own clock.
    next: Instant,
    /// Whether it works.
    leads: bool,
    stop: Option<Stop>,
    /// How many steps it works on before it looks at its clock, after it was stopped.
    blind: usize,
    /// Until when its requests for the Lease are lost.
    cut_off: Option<Instant>,
    /// Whether its clock has run since its last renewal began.
    has_true_clock: bool,
}

/// A replica stands still.
#[derive(Clone, Copy, Debug)]
struct Stop {
    until: Instant,
    steps: usize,
    /// Whether its clock continues, as that of a stopped process does, and that of a suspended machine does
    /// not.
    keeps_time: bool,
}

#[derive(Clone, Debug)]
struct OwnClock {
    /// In thousandths.
    speed: u32,
    /// Its time at the true time `since`.
    own: Instant,
    since: Instant,
    /// How far its time of day is from the true one.
    skew: SignedDuration,
}

#[derive(Clone, Debug)]
struct Attempt {
    /// By the replica's own clock.
    until: Instant,
    stage: Stage,
    /// Whether the replica's clock has run since it began.
    has_true_clock: bool,
}

#[derive(Clone, Debug)]
enum Stage {
    Read,
    Write(Write),
    Answered(Take, Result<(), Conflict>),
}

/// The server refuses a write, since the Lease is another one.
#[derive(Clone, Copy, Debug)]
struct Conflict;

#[derive(Clone, Debug)]
struct Write {
    take: Take,
    /// The Lease that it replaces.
    expects: Option<String>,
    lease: Lease,
}

impl OwnClock {
    fn of(dice: &mut Dice, now: Instant) -> Self {
        let speed = (SLOWEST + dice.roll(FASTEST - SLOWEST)) as u32;
        let skew = SignedDuration::from_secs(dice.roll(SKEW) as i64 - (SKEW / 2) as i64);
        Self { speed, own: now, since: now, skew }
    }

    fn at(&self, now: Instant) -> Instant {
        self.own + now.saturating_duration_since(self.since) * self.speed / 1000
    }

    /// The true time at its time `own`.
    fn true_time(&self, own: Instant) -> Instant {
        self.since + own.saturating_duration_since(self.own) * 1000 / self.speed
    }
}

impl Replicas {
    /// Replicas that have just started, and no Lease.
    pub fn new(dice: &mut Dice, now: Instant) -> Self {
        let replicas = (0..REPLICAS).map(|index| {
            let claim = Claim::new(&index.to_string(), now);
            Replica::new(claim, OwnClock::of(dice, now), now)
        });
        Self {
            lease: None,
            replicas: replicas.collect(),
            strays: Vec::new(),
            started: REPLICAS,
            is_settled: false,
        }
    }

    /// How far the time of day of a replica is from the true one.
    pub fn skew(&self, replica: usize) -> SignedDuration {
        self.replicas[replica].clock.skew
    }

    /// Whether a replica is not stopped.
    pub fn runs(&self, replica: usize) -> bool {
        self.replicas[replica].stop.is_none()
    }

    /// Stops a replica for a while; then it works on for some steps before it looks at its clock.
    pub fn stop(&mut self, replica: usize, until: Instant, steps: usize, keeps_time: bool, now: Instant) {
        let replica = &mut self.replicas[replica];
        if replica.stop.is_none() {
            replica.clock.own = replica.clock.at(now);
            replica.clock.since = now;
            replica.stop = Some(Stop { until, steps, keeps_time });
        }
    }

    /// Loses all requests of a replica for the Lease, for a while.
    pub fn cut_off(&mut self, replica: usize, until: Instant) {
        self.replicas[replica].cut_off = Some(until);
    }

    /// Ends a replica, and starts another one in its place; `releases` the Lease in an orderly end.
    pub fn restart(&mut self, replica: usize, releases: bool, at: &mut Surroundings<'_>) -> Option<News> {
        self.started += 1;
        let claim = Claim::new(&self.started.to_string(), at.now);
        let next = Replica::new(claim, OwnClock::of(at.dice, at.now), at.now);
        let before = std::mem::replace(&mut self.replicas[replica], next);
        if let Some(Attempt { stage: Stage::Write(write), .. }) = before.attempt {
            self.strays.push(write);
        }
        if let Some(lease) = &mut self.lease
            && releases
            && lease.holder == before.claim.identity()
        {
            at.clock.revision += 1;
            *lease = Lease {
                resource_version: at.clock.revision.to_string(),
                holder: String::new(),
                duration: Some(Duration::from_secs(1)),
                renewed: lease.renewed.clone(),
            };
        }
        before.leads.then_some(News::Ends(replica))
    }

    /// Ends all that stops replicas or loses their requests.
    pub fn heal(&mut self, now: Instant) {
        for replica in &mut self.replicas {
            replica.cut_off = None;
            if let Some(stop) = &mut replica.stop {
                stop.until = now;
            }
        }
    }

    /// Whether one replica leads, and all run; then it leads for good.
    pub fn settle(&mut self) -> bool {
        let leaders = self.replicas.iter().filter(|replica| replica.leads && replica.blind == 0).count();
        self.is_settled = leaders == 1
            && self.strays.is_empty()
            && self.replicas.iter().all(|replica| replica.stop.is_none());
        self.is_settled
    }

    /// The true time at which there is something to do.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let of_replica = |replica: &Replica| match &replica.stop {
            Some(stop) => stop.until,
            None if replica.attempt.is_some() => now,
            None => replica.clock.true_time(replica.next),
        };
        (!self.is_settled).then(|| self.replicas.iter().map(of_replica).min()).flatten()
    }

    /// Lets time pass in which no clock of a replica runs, as where all of them are stopped.
    pub fn stand_still(&mut self, time: Duration) {
        for replica in &mut self.replicas {
            replica.clock.since += time;
            replica.cut_off = replica.cut_off.map(|until| until + time);
            if let Some(stop) = &mut replica.stop {
                stop.until += time;
            }
        }
    }

    /// Has every replica look at its clock: it ends where its time is over, and tries where it is time to.
    pub fn look_at_clocks(&mut self, at: &mut Surroundings<'_>) -> Vec<News> {
        let mut news = Vec::new();
        if self.is_settled {
            return news;
        }
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            if let Some(stop) = replica.stop {
                if at.now < stop.until {
                    continue;
                }
                replica.go_on(stop, at.now);
            }
            let own = replica.clock.at(at.now);
            if replica.attempt.as_ref().is_some_and(|attempt| own >= attempt.until) {
                self.strays.extend(replica.fail(own).filter(|_| at.dice.roll(2) == 0));
            }
            let is_over = replica.leads && !replica.claim.leads(own);
            if is_over && replica.blind > 1 {
                replica.blind -= 1;
                continue;
            }
            replica.blind = 0;
            if is_over {
                self.strays.extend(replica.fail(own));
                replica.claim.release();
                replica.next = own;
                if at.sabotage != Some(Sabotage::GoesOnWithoutTheLease) {
                    (replica.leads, replica.has_true_clock) = (false, true);
                    news.push(News::Ends(index));
                }
            }
            if replica.attempt.is_none() && own >= replica.next {
                let until = own + replica.claim.begin(own);
                replica.attempt = Some(Attempt { until, stage: Stage::Read, has_true_clock: true });
            }
        }
        news
    }

    /// How many requests for the Lease, and answers, are under way.
    pub fn choices(&self) -> usize {
        if self.is_settled { 0 } else { self.trying().count() + self.strays.len() }
    }

    fn trying(&self) -> impl Iterator<Item = usize> {
        let all = self.replicas.iter().enumerate();
        all.filter(|(_, replica)| replica.stop.is_none() && replica.attempt.is_some()).map(|(index, _)| index)
    }

    /// One of them continues.
    pub fn advance(&mut self, choice: usize, at: &mut Surroundings<'_>) -> Option<News> {
        let chosen = self.trying().nth(choice);
        let Some(index) = chosen else {
            let write = self.strays.swap_remove(choice - self.trying().count());
            // What conflicts has not happened.
            let _ = self.write(write, at.clock);
            return None;
        };
        let replica = &mut self.replicas[index];
        let own = replica.clock.at(at.now);
        let is_cut_off = replica.cut_off.is_some_and(|until| at.now < until);
        let attempt = replica.attempt.take()?;
        match attempt.stage {
            Stage::Read if is_cut_off || at.has_faults && at.dice.loses() => drop(replica.fail(own)),
            Stage::Read => {
                let lease = self.lease.clone().map(|lease| match at.sabotage {
                    Some(Sabotage::TakesTheLeaseEarly) => {
                        Lease { duration: Some(Duration::from_secs(5)), ..lease }
                    }
                    _ => lease,
                });
                let take = replica.claim.read(lease.as_ref(), own);
                if take == Take::Respect {
                    drop(replica.fail(own));
                } else {
                    let write = replica.write(take, lease, at.now);
                    replica.attempt = Some(Attempt { stage: Stage::Write(write), ..attempt });
                }
            }
            Stage::Write(write) => {
                let fate = match is_cut_off {
                    true => Fate::Lost,
                    false if at.has_faults => at.dice.fate(),
                    false => Fate::Answered,
                };
                match fate {
                    Fate::Lost => drop(replica.fail(own)),
                    Fate::Late => {
                        replica.fail(own);
                        self.strays.push(write);
                    }
                    Fate::Unanswered => {
                        replica.fail(own);
                        let _ = self.write(write, at.clock);
                    }
                    Fate::Answered => {
                        let take = write.take;
                        let answer = self.write(write, at.clock);
                        let stage = Stage::Answered(take, answer);
                        self.replicas[index].attempt = Some(Attempt { stage, ..attempt });
                    }
                }
            }
            Stage::Answered(_, Ok(())) => {
                replica.claim.renewed();
                replica.has_true_clock = attempt.has_true_clock;
                replica.fail(own);
                if !replica.leads && replica.claim.leads(own) {
                    replica.leads = true;
                    return Some(News::Leads(index));
                }
            }
            Stage::Answered(take, Err(Conflict)) => {
                replica.claim.conflicted(take);
                replica.fail(own);
            }
        }
        None
    }

    fn write(&mut self, write: Write, clock: &mut Clock) -> Result<(), Conflict> {
        let known = self.lease.as_ref().map(|lease| &lease.resource_version);
        if known != write.expects.as_ref() {
            return Err(Conflict);
        }
        clock.revision += 1;
        self.lease = Some(Lease { resource_version: clock.revision.to_string(), ..write.lease });
        Ok(())
    }

    /// Whether more than one replica leads: works, and has had the time to look at its clock; or holds the
    /// Lease by the rule. A machine that was suspended knows nothing of the time in which its clock stood
    /// still.
    pub fn are_two_leading(&self, now: Instant) -> bool {
        let with_time =
            |replica: &&Replica| replica.has_true_clock && replica.stop.is_none_or(|stop| stop.keeps_time);
        let all = || self.replicas.iter().filter(with_time);
        let works = |replica: &&Replica| replica.leads && replica.stop.is_none() && replica.blind == 0;
        let holds = |replica: &&Replica| replica.claim.leads(replica.clock.at(now));
        !self.is_settled && (all().filter(works).count() > 1 || all().filter(holds).count() > 1)
    }
}

impl Replica {
    fn new(claim: Claim, clock: OwnClock, now: Instant) -> Self {
        Self {
            claim,
            clock,
            attempt: None,
            next: now,
            leads: false,
            stop: None,
            blind: 0,
            cut_off: None,
            has_true_clock: true,
        }
    }

    /// Continues after a stop.
    fn go_on(&mut self, stop: Stop, now: Instant) {
        (self.stop, self.blind) = (None, stop.steps);
        if !stop.keeps_time {
            self.clock.since = now;
            self.has_true_clock = false;
            if let Some(attempt) = &mut self.attempt {
                attempt.has_true_clock = false;
            }
        }
    }

    /// Ends an attempt, and waits for the next one; the write that may still arrive.
    fn fail(&mut self, own: Instant) -> Option<Write> {
        self.next = own + self.claim.wait(own);
        match self.attempt.take()?.stage {
            Stage::Write(write) => Some(write),
            Stage::Read | Stage::Answered(..) => None,
        }
    }

    /// The write that takes or renews the Lease.
    fn write(&mut self, take: Take, before: Option<Lease>, now: Instant) -> Write {
        let time = format!("{:?} by {}", now, self.claim.identity());
        self.claim.renews(time.clone());
        let lease = Lease {
            resource_version: String::new(),
            holder: self.claim.identity().to_owned(),
            duration: Some(DURATION),
            renewed: Some(time),
        };
        Write { take, expects: before.map(|before| before.resource_version), lease }
    }
}
