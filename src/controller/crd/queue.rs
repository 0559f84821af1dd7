//! The objects of a CRD that are being seen to while it is watched, and those that wait for it.
//! It must not judge what became of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use crate::controller::object::reconcile::{Stop, Tended, Tender};
use crate::controller::state::tally::Fate;
use crate::domain::object::{Identity, Object};
use crate::domain::plan::Record;

/// Objects seen to at once.
const AT_ONCE: usize = 16;
/// Of these, objects that are read again: there may be many, and what changes now comes first.
const READ_AGAIN: usize = 8;

/// What became of an object.
pub(in crate::controller) struct Done {
    pub(in crate::controller) identity: Identity,
    pub(in crate::controller) tended: Result<Tended, Stop>,
    pub(in crate::controller) is: Known,
}

/// What the numbers know of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Known {
    /// It is one of those that are counted.
    Counted,
    /// It was created since they were.
    New,
    /// It was deleted while it was seen to.
    Deleted,
}

/// What became of an object that was seen to.
type Ended = (Identity, Result<Tended, Stop>);

/// What came to be known of an object while it is seen to.
enum Meanwhile {
    Nothing,
    /// It changed: this is its newest state.
    Changed(Object),
    Deleted,
}

/// The objects of one CRD that are being seen to.
pub(in crate::controller) struct Attendance<'a> {
    tender: Tender<'a>,
    record: Arc<Record>,
    under_way: FuturesUnordered<BoxFuture<'a, Ended>>,
    ended: VecDeque<Ended>,
    /// The objects that are under way, by uid. Each is seen to once at a time, so that what is said of it last is so.
    meanwhile: HashMap<String, Meanwhile>,
    /// The newest state of the object that was done last.
    newest: Option<Object>,
    /// The uids of objects that were created and are not counted yet.
    new: HashSet<String>,
    /// Objects to be read again as soon as there is room.
    again: VecDeque<Identity>,
    /// Objects to be read again after a while, each once.
    later: FuturesUnordered<BoxFuture<'static, Identity>>,
    waiting: HashSet<Identity>,
    insistence: Insistence,
}

impl<'a> Attendance<'a> {
    pub(in crate::controller) fn new(tender: Tender<'a>, record: Record) -> Self {
        Self {
            tender,
            record: Arc::new(record),
            under_way: FuturesUnordered::new(),
            ended: VecDeque::new(),
            meanwhile: HashMap::new(),
            newest: None,
            new: HashSet::new(),
            again: VecDeque::new(),
            later: FuturesUnordered::new(),
            waiting: HashSet::new(),
            insistence: Insistence::default(),
        }
    }

    /// What is on record from now on.
    pub(in crate::controller) fn go_by(&mut self, record: Record) {
        self.record = Arc::new(record);
    }

    /// Whether one more object can be seen to.
    pub(in crate::controller) fn has_room(&self) -> bool {
        self.under_way.len() < AT_ONCE
    }

    /// Sees to an object that was created.
    pub(in crate::controller) fn created(&mut self, object: Object) {
        self.new.insert(object.uid().to_owned());
        self.attend(object);
    }

    /// Says that an object was deleted; whether it is one of those that are counted.
    pub(in crate::controller) fn deleted(&mut self, object: &Object) -> bool {
        if let Some(meanwhile) = self.meanwhile.get_mut(object.uid()) {
            *meanwhile = Meanwhile::Deleted;
        }
        !self.new.remove(object.uid())
    }

    /// Sees to an object as it was read; later, where somebody has undone again and again what was stored there.
    pub(in crate::controller) fn attend(&mut self, object: Object) {
        if let Some(meanwhile) = self.meanwhile.get_mut(object.uid()) {
            *meanwhile = Meanwhile::Changed(object);
            return;
        }
        let delay = self.insistence.delay(object.uid());
        if delay.is_zero() {
            let (tender, record) = (self.tender, self.record.clone());
            let identity = object.identity();
            self.meanwhile.insert(identity.uid.clone(), Meanwhile::Nothing);
            self.under_way.push(Box::pin(async move { (identity, tender.tend(object, &record).await) }));
        } else if self.waiting.insert(object.identity()) {
            let identity = object.identity();
            self.later.push(Box::pin(async move {
                tokio::time::sleep(delay).await;
                identity
            }));
        }
    }

    /// Reads objects again and sees to them, as soon as there is room.
    pub(in crate::controller) fn read_again(&mut self, objects: impl IntoIterator<Item = Identity>) {
        self.again.extend(objects);
    }

    /// Says that a default was stored in an object while watching.
    pub(in crate::controller) fn wrote(&mut self, uid: &str) {
        self.insistence.wrote(uid);
    }

    /// What became of an object. This future may be dropped at any time, and never ends while nothing is under way.
    pub(in crate::controller) async fn next(&mut self) -> Done {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return self.done(ended);
            }
            while self.under_way.len() < READ_AGAIN
                && let Some(identity) = self.again.pop_front()
            {
                if self.meanwhile.contains_key(&identity.uid) {
                    continue;
                }
                self.meanwhile.insert(identity.uid.clone(), Meanwhile::Nothing);
                self.under_way.push(Box::pin(read_and_tend(self.tender, identity, self.record.clone())));
            }
            tokio::select! {
                Some(ended) = self.under_way.next() => return self.done(ended),
                Some(identity) = self.later.next() => {
                    self.waiting.remove(&identity);
                    self.again.push_back(identity);
                }
                else => std::future::pending().await,
            }
        }
    }

    /// Waits until nothing is under way any more. What has begun goes on; what comes of it is not taken down.
    pub(in crate::controller) async fn drain(&mut self) {
        while self.under_way.next().await.is_some() {}
    }

    /// Does something else while what is under way goes on: it holds places that other CRDs wait for.
    pub(in crate::controller) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                Some(ended) = self.under_way.next() => self.ended.push_back(ended),
            }
        }
    }

    /// The state of the object that was done last, if it changed meanwhile: it is to be seen to once more.
    pub(in crate::controller) fn newest(&mut self) -> Option<Object> {
        self.newest.take()
    }

    fn done(&mut self, (identity, tended): Ended) -> Done {
        // One that went away stays new: the watch is still to tell of its end.
        let is_gone = matches!(&tended, Ok(Tended { fate: Fate::Gone, .. }));
        let mut is = match !is_gone && self.new.remove(&identity.uid) {
            true => Known::New,
            false => Known::Counted,
        };
        match self.meanwhile.remove(&identity.uid) {
            Some(Meanwhile::Changed(object)) => self.newest = Some(object),
            Some(Meanwhile::Deleted) => is = Known::Deleted,
            Some(Meanwhile::Nothing) | None => {}
        }
        Done { identity, tended, is }
    }
}

async fn read_and_tend(tender: Tender<'_>, identity: Identity, record: Arc<Record>) -> Ended {
    let without_need = |fate| Ok(Tended { fate, missing: Vec::new() });
    let tended = match tender.cluster.object(&tender.crd.resource(), &identity).await {
        Ok(Some(object)) => tender.tend(object, &record).await,
        Ok(None) => without_need(Fate::Gone),
        Err(_) => without_need(Fate::Unknown),
    };
    (identity, tended)
}

/// Objects that were written again and again while watching: somebody undoes what we do, and is not raced.
#[derive(Default)]
struct Insistence(HashMap<String, (u32, Instant)>);

impl Insistence {
    const LAST: Duration = Duration::from_secs(300);

    /// How long to wait before this object is looked at again.
    fn delay(&mut self, uid: &str) -> Duration {
        match self.0.get(uid) {
            Some((times, wrote)) if wrote.elapsed() < Self::LAST * 2 => {
                let wait = Duration::from_millis(100) * 2_u32.saturating_pow((*times).min(12));
                if *times < 3 { Duration::ZERO } else { wait.min(Self::LAST) }
            }
            _ => Duration::ZERO,
        }
    }

    fn wrote(&mut self, uid: &str) {
        if self.0.len() >= 10_000 {
            self.0.retain(|_, (_, wrote)| wrote.elapsed() < Self::LAST * 2);
        }
        let entry = self.0.entry(uid.to_owned()).or_insert((0, Instant::now()));
        if entry.1.elapsed() >= Self::LAST * 2 {
            entry.0 = 0;
        }
        *entry = (entry.0 + 1, Instant::now());
    }
}
