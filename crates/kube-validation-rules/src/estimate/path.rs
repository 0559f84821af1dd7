//! The way from a variable to what an expression reads, by which its size is looked up in the schema.
//! Do not tidy it up: that paths can overwrite each other is part of what rules cost.
//!
//! Upstream appends to slices that several expressions share. Where there is room, appending overwrites what
//! another of them has appended before; so a path can come to lead somewhere else, and CRDs are judged by
//! that.

use std::cell::RefCell;
use std::rc::Rc;

/// A slice of Go: how much of an array that others may see as well.
#[derive(Clone, Debug)]
pub(super) struct Path<'t> {
    array: Rc<RefCell<Array<'t>>>,
    len: usize,
}

#[derive(Debug)]
struct Array<'t> {
    parts: Vec<&'t str>,
    capacity: usize,
}

impl<'t> Path<'t> {
    /// A path of one part, with no room.
    pub(super) fn of(part: &'t str) -> Self {
        Self { array: Rc::new(RefCell::new(Array { parts: vec![part], capacity: 1 })), len: 1 }
    }

    /// Go's `append` to a path, or to nil.
    pub(super) fn append(path: Option<&Self>, part: &'t str) -> Self {
        let Some(path) = path else { return Self::of(part) };
        let mut array = path.array.borrow_mut();
        if path.len < array.capacity {
            match array.parts.get_mut(path.len) {
                Some(place) => *place = part,
                None => array.parts.push(part),
            }
            return Self { array: Rc::clone(&path.array), len: path.len + 1 };
        }
        Self::grown(&array.parts[..path.len], part, array.capacity * 2)
    }

    /// One part more, in an array of its own.
    pub(super) fn copied(path: &Self, part: &'t str) -> Self {
        let array = path.array.borrow();
        Self::grown(&array.parts[..path.len], part, path.len + 1)
    }

    fn grown(parts: &[&'t str], part: &'t str, capacity: usize) -> Self {
        let mut parts = parts.to_vec();
        parts.push(part);
        let len = parts.len();
        Self { array: Rc::new(RefCell::new(Array { parts, capacity })), len }
    }

    /// The present parts.
    pub(super) fn parts(&self) -> Vec<&'t str> {
        self.array.borrow().parts[..self.len].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_room_the_last_append_counts() {
        let root = Path::of("self");
        let (a, b) = (Path::append(Some(&root), "a"), Path::append(Some(&root), "b"));
        assert_eq!((a.parts(), b.parts()), (vec!["self", "a"], vec!["self", "b"]));
        let items = Path::append(Some(&a), "@items");
        let (x, y) = (Path::append(Some(&items), "x"), Path::append(Some(&items), "y"));
        assert_eq!(x.parts(), ["self", "a", "@items", "y"]);
        assert_eq!(y.parts(), ["self", "a", "@items", "y"]);
        assert_eq!(Path::copied(&items, "z").parts(), ["self", "a", "@items", "z"]);
        assert_eq!(Path::append(None, "@items").parts(), ["@items"]);
    }
}
