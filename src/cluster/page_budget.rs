//! How many objects are asked for at a time: as many as there is room for, by what was seen of their size.
//! No caller waits: one that finds hardly any room gets pages of one object.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

use etch_core::crd::Resource;
use etch_core::engine::sweep::Form;
use etch_core::pace::limits::PaceMode;

/// The most objects per page of a list, as client-go's pager has it.
pub const PAGE_SIZE: u32 = 500;
/// Objects on the first page of a resource of which nothing has been read: they may be of 1.5 MB each.
const FIRST_PAGE: u32 = 25;
/// How large one of them is taken to be, in bytes, until the page is there.
const USUAL: usize = 64 << 10;
/// How large a page is to be, in bytes…
const PAGE_BYTES: usize = 2 << 20;
/// …and beside a gentle pace, which also asks for fewer objects: while a server reads and encodes a page,
/// its other clients wait.
const GENTLE: PageSize = PageSize { objects: 100, bytes: 32 << 10 };
/// How large a page may be, unless it is of one object: of a larger one the rest is not read, and fewer are
/// asked for…
const LARGEST_PAGE: usize = 2 * PAGE_BYTES;
/// …how many times fewer…
const RETREAT: u32 = 5;
/// …and all pages that are held at the same time: hundreds of CRDs may wait for their writes, each with a
/// page in hand.
const ROOM: usize = 16 << 20;
/// No page takes more than this part of the room that is left, so that some is left for the next one.
const SHARE: usize = 4;
/// How much larger than the page before one may be: the objects on it may be larger, too.
const GROWTH: u32 = 4;

/// What all pages share. `K` is what pages are of: those of the same are taken to be of similar objects.
#[derive(Debug)]
pub(super) struct PageBudget<K = (Resource, Form)> {
    most: PageSize,
    state: Mutex<State<K>>,
}

/// How many objects a page is to have at most, and bytes.
#[derive(Clone, Copy, Debug)]
struct PageSize {
    objects: u32,
    bytes: usize,
}

#[derive(Debug)]
struct State<K> {
    /// Bytes of the pages that are held, and the estimated bytes of those that were asked for.
    taken: usize,
    seen: HashMap<K, Seen>,
}

/// What was seen of a resource in one form.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// How many objects may be asked for, where there is room.
    limit: u32,
    /// How large one was on the last page, and the largest page, in bytes.
    each: usize,
    largest: usize,
}

/// The room that one page takes until this is dropped.
#[derive(Debug)]
pub struct Reservation<K: Clone + Eq + Hash = (Resource, Form)> {
    budget: Arc<PageBudget<K>>,
    of: K,
    bytes: usize,
    /// How many objects were asked for.
    pub limit: u32,
}

impl<K: Clone + Eq + Hash> Default for PageBudget<K> {
    fn default() -> Self {
        Self::beside(PaceMode::Fast)
    }
}

impl<K: Clone + Eq + Hash> PageBudget<K> {
    /// Pages that strain the server as little as the writes of a pace do.
    pub(super) fn beside(pace: PaceMode) -> Self {
        let most = match pace {
            PaceMode::Gentle => GENTLE,
            PaceMode::Fast => PageSize { objects: PAGE_SIZE, bytes: PAGE_BYTES },
        };
        let state = State { taken: 0, seen: HashMap::new() };
        Self { most, state: Mutex::new(state) }
    }

    /// Takes the room for a page that is about to be asked for.
    pub(super) fn reserve(self: &Arc<Self>, of: K) -> Reservation<K> {
        let mut state = self.state.lock();
        let Seen { limit, each, largest } = state.seen.get(&of).copied().unwrap_or(Seen {
            limit: FIRST_PAGE,
            each: USUAL,
            largest: FIRST_PAGE as usize * USUAL,
        });
        let fitting = ROOM.saturating_sub(state.taken) / SHARE / each.max(1);
        let limit = limit.min(u32::try_from(fitting).unwrap_or(PAGE_SIZE)).max(1);
        let bytes = largest.min(limit as usize * each);
        state.taken += bytes;
        drop(state);
        Reservation { budget: self.clone(), of, bytes, limit }
    }

    /// Whether at least half of the room is free.
    pub(super) fn is_half_free(&self) -> bool {
        self.state.lock().taken <= ROOM / 2
    }
}

impl PageBudget {
    /// Forgets the objects of a CRD that is gone.
    pub(super) fn forget(&self, crd: &str) {
        let is_of = |resource: &Resource| {
            crd.strip_prefix(&resource.plural).and_then(|rest| rest.strip_prefix('.'))
                == Some(&resource.group)
        };
        self.state.lock().seen.retain(|(resource, _), _| !is_of(resource));
    }
}

impl<K: Clone + Eq + Hash> Reservation<K> {
    /// How many bytes of the page are read at most.
    pub fn most(&self) -> usize {
        if self.limit == 1 { usize::MAX } else { LARGEST_PAGE }
    }

    /// Records that the page is larger than that: the next page asks for fewer objects.
    pub fn set_too_large(&mut self) {
        let limit = (self.limit / RETREAT).max(1);
        let each = LARGEST_PAGE / limit as usize;
        let mut state = self.budget.state.lock();
        let largest = state.seen.get(&self.of).map_or(0, |before| before.largest).max(LARGEST_PAGE);
        state.seen.insert(self.of.clone(), Seen { limit, each, largest });
    }

    /// Records how large the page is that has come.
    pub fn set_actual_size(&mut self, objects: usize, bytes: usize) {
        let mut state = self.budget.state.lock();
        state.taken = state.taken - self.bytes + bytes;
        self.bytes = bytes;
        if objects == 0 {
            return;
        }
        let each = (bytes / objects).max(1);
        let most = self.budget.most;
        let before = state.seen.get(&self.of).copied();
        let proven = before.map_or(0, |before| before.limit).max(self.limit.saturating_mul(GROWTH));
        let fitting = u32::try_from(most.bytes / each).unwrap_or(PAGE_SIZE);
        let limit = fitting.min(proven).clamp(1, most.objects);
        let largest = before.map_or(0, |before| before.largest).max(bytes);
        state.seen.insert(self.of.clone(), Seen { limit, each, largest });
    }
}

impl<K: Clone + Eq + Hash> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.budget.state.lock().taken -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: impl ToString) -> Resource {
        Resource { group: "example.com".to_owned(), version: "v1".to_owned(), plural: name.to_string() }
    }

    /// A page of a resource that has `objects` of `each` bytes.
    fn page(
        budget: &Arc<PageBudget>,
        name: impl ToString,
        objects: usize,
        each: usize,
    ) -> (usize, Reservation) {
        let mut reservation = budget.reserve((resource(name), Form::Whole));
        let objects = objects.min(reservation.limit as usize);
        reservation.set_actual_size(objects, objects * each);
        (objects, reservation)
    }

    #[test]
    fn pages_of_any_number_of_resources_are_bounded_together() {
        let budget = Arc::new(PageBudget::default());
        let held: Vec<_> = (0..500).map(|name| page(&budget, name, 1_000, 8 << 10)).collect();
        assert!(budget.state.lock().taken <= ROOM + 500 * (8 << 10), "{} bytes", budget.state.lock().taken);
        assert_eq!((held[0].0, held[499].0), (25, 1));
        drop(held);
        assert_eq!(budget.state.lock().taken, 0);
        assert_eq!(page(&budget, 499, 1_000, 8 << 10).0, 4);
    }

    #[test]
    fn small_lists_of_hundreds_of_resources_are_held_whole() {
        let budget = Arc::new(PageBudget::default());
        let held: Vec<_> = (0..500).map(|name| page(&budget, name, 20, 1_100)).collect();
        assert!(held.iter().all(|(objects, _)| *objects == 20));
    }

    #[test]
    fn a_page_that_was_small_for_lack_of_room_makes_none_smaller_that_follows() {
        let budget = Arc::new(PageBudget::default());
        let sizes = (0..5).map(|_| page(&budget, "things", 1_000, 1_000).0);
        assert_eq!(sizes.collect::<Vec<_>>(), [25, 100, 400, 500, 500]);
        let others: Vec<_> = (0..500).map(|name| page(&budget, name, 1_000, 100 << 10)).collect();
        assert_eq!(page(&budget, "things", 1_000, 1_000).0, 1);
        drop(others);
        assert_eq!(page(&budget, "things", 1_000, 1_000).0, 500);
    }

    #[test]
    fn pages_beside_a_gentle_pace_are_small() {
        let sizes = |each| {
            let budget = Arc::new(PageBudget::beside(PaceMode::Gentle));
            (0..4).map(|_| page(&budget, "things", 1_000, each).0).collect::<Vec<_>>()
        };
        assert_eq!(sizes(100), [25, 100, 100, 100]);
        assert_eq!(sizes(1_000), [25, 32, 32, 32]);
        assert_eq!(sizes(10_000), [25, 3, 3, 3]);
        assert_eq!(sizes(1_000_000), [25, 1, 1, 1]);
    }

    #[test]
    fn there_is_room_ahead_while_half_of_it_is_free() {
        let budget = Arc::new(PageBudget::default());
        let mut held = Vec::new();
        while budget.is_half_free() {
            held.push(page(&budget, "things", 1_000, 100 << 10));
        }
        let taken = budget.state.lock().taken;
        assert!(taken > ROOM / 2 && taken <= ROOM / 2 + (3 << 20), "{taken} bytes");
        held.pop();
        assert!(budget.is_half_free());
    }

    #[test]
    fn the_objects_of_a_crd_that_is_gone_are_forgotten() {
        let budget = Arc::new(PageBudget::default());
        for name in ["things", "others"] {
            drop(page(&budget, name, 1_000, 1_000));
        }
        budget.forget("things.example.com");
        let known: Vec<_> =
            budget.state.lock().seen.keys().map(|(resource, _)| resource.plural.clone()).collect();
        assert_eq!(known, ["others"]);
    }

    #[test]
    fn what_was_asked_for_and_never_came_takes_no_room() {
        let budget = Arc::new(PageBudget::default());
        let asked: Vec<_> = (0..4).map(|name| budget.reserve((resource(name), Form::Whole))).collect();
        assert_eq!(budget.state.lock().taken, 4 * 25 * USUAL);
        drop(asked);
        assert_eq!(budget.state.lock().taken, 0);
    }

    #[test]
    fn a_page_that_is_too_large_is_asked_for_with_fewer_objects() {
        let budget = Arc::new(PageBudget::default());
        let mut limits = Vec::new();
        loop {
            let mut page = budget.reserve((resource("things"), Form::Whole));
            limits.push(page.limit);
            if page.most() == usize::MAX {
                page.set_actual_size(1, 3 << 20);
                break;
            }
            page.set_too_large();
        }
        assert_eq!(limits, [25, 5, 1]);
        assert_eq!(budget.reserve((resource("things"), Form::Whole)).limit, 1);
        assert_eq!(budget.reserve((resource("others"), Form::Whole)).limit, 25);
    }
}
