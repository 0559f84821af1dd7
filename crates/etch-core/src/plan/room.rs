//! A bound on what is collected of one object. A place names the keys above it again, and an object may have
//! a hundred thousand places: together they may take many times the object.

use kube_structural_schema::path::{Path, Step};

/// How many bytes the places that are collected of one object may take.
pub(super) const ROOM: usize = 2 << 20;

/// How many bytes there is still room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(usize);

impl Room {
    pub(super) const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes so many bytes, if there is room for them. Where there is none for one thing, there is none for
    /// any later one.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

/// Whether these may be no more than some of an object's places: no single one takes half of the room.
pub(super) fn may_be_cut(places: &[Path]) -> bool {
    let mut room = Room::of(ROOM / 2);
    !places.iter().all(|place| room.take(size(place)))
}

/// How many bytes a place takes.
pub(super) fn size(path: &Path) -> usize {
    let name = |step: &Step| match step {
        Step::Field(name) | Step::Key(name) => name.len(),
        Step::Index(_) | Step::Items | Step::Values => 0,
    };
    let names: usize = path.steps().iter().map(name).sum();
    size_of::<Path>() + size_of_val(path.steps()) + names
}
