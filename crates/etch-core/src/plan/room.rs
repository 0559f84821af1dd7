//! A bound on what is collected of one object. A place names the keys above it again, and an object may have a
//! hundred thousand places: together they may take many times the object.

/// How many bytes there is still room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(usize);

impl Room {
    pub(super) const fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes so many bytes, if there is room for them. Where there is none for one thing, there is none for any
    /// later one.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}
