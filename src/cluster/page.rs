//! A page of a list, parsed object by object.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::page_budget::Reservation;
use etch_core::call_error::CallError;
use etch_core::engine::sweep::{self, Listed};
use etch_core::object::Object;
use etch_core::report::versions::key;

/// A part of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Object>,
    /// The resource version of the list. A watch continues from that of the first page: a list whose snapshot
    /// is lost continues with a later one, and what changed in between on the pages before is in none of
    /// them.
    pub resource_version: String,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
    /// How many objects the whole list has, by the first page; an estimate, for objects come and go.
    pub total: Option<u64>,
}

/// A part of a list as it came: its objects are still to be parsed. See [`Page`].
#[derive(Debug)]
pub struct RawPage {
    body: Vec<u8>,
    /// Where in the body the objects are.
    items: Vec<Range<usize>>,
    /// See [`Page::resource_version`].
    pub resource_version: String,
    /// See [`sweep::Page::latest`].
    pub latest: String,
    /// See [`Page::next`].
    pub next: Option<String>,
    /// See [`Page::total`].
    pub total: Option<u64>,
    _reservation: Reservation,
}

/// An object's name, without the rest of it.
#[derive(Deserialize)]
struct Named {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    namespace: Option<String>,
    name: String,
}

/// Items are taken as text first, so that an object that is nested too deeply (C7) does not fail its page.
#[derive(Deserialize)]
struct List<'a> {
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    r#continue: String,
    remaining_item_count: Option<u64>,
}

impl RawPage {
    /// Reads the body of an answer to a list, for which room was reserved.
    ///
    /// # Errors
    /// It is no list.
    pub fn read(body: Vec<u8>, mut reservation: Reservation) -> Result<Self, CallError> {
        let list: List<'_> = serde_json::from_slice(&body).map_err(CallError::malformed)?;
        let start = body.as_ptr().addr();
        let place = |item: &RawValue| {
            let text = item.get();
            // A raw value that is borrowed is a part of the body.
            let first = text.as_ptr().addr() - start;
            first..first + text.len()
        };
        let items: Vec<_> = list.items.unwrap_or_default().into_iter().map(place).collect();
        let next = Some(list.metadata.r#continue).filter(|token| !token.is_empty());
        let total = match (&next, list.metadata.remaining_item_count) {
            (Some(_), None) => None,
            (_, remaining) => Some(items.len() as u64 + remaining.unwrap_or_default()),
        };
        reservation.set_actual_size(items.len(), body.len());
        Ok(Self {
            items,
            latest: list.metadata.resource_version.clone(),
            resource_version: list.metadata.resource_version,
            next,
            total,
            body,
            _reservation: reservation,
        })
    }

    /// Whether it has no objects.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Namespaces and names of the objects; no namespace is an empty one.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn names(&self) -> impl Iterator<Item = Result<(String, String), CallError>> {
        self.items.iter().map(|item| {
            let Named { metadata } =
                serde_json::from_slice(&self.body[item.clone()]).map_err(CallError::malformed)?;
            Ok((metadata.namespace.unwrap_or_default(), metadata.name))
        })
    }

    /// Each object, parsed when its turn comes: parsed, it takes many times the room.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = Result<Object, CallError>> {
        (0..self.items.len()).map(|index| self.object(index))
    }

    /// The same for a sweep; `read` is when it had been read, at the latest.
    ///
    /// # Errors
    /// Where an object has no name.
    pub fn into_page(self, read: Instant) -> Result<sweep::Page, CallError> {
        let keys = self.names().map(|name| name.map(|(namespace, name)| key(&namespace, &name)));
        let keys = keys.collect::<Result<_, _>>()?;
        let Self { resource_version, latest, next, total, .. } = &self;
        let (resource_version, latest) = (resource_version.clone(), latest.clone());
        let (next, total) = (next.clone(), *total);
        let objects = Arc::new(self);
        Ok(sweep::Page { keys, resource_version, latest, next, total, read, objects })
    }

    /// Parses all objects.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn parse(self) -> Result<Page, CallError> {
        let objects = self.objects().collect::<Result<_, _>>()?;
        let Self { resource_version, next, total, .. } = self;
        Ok(Page { objects, resource_version, next, total })
    }
}

impl Listed for RawPage {
    fn size(&self, index: usize) -> usize {
        self.items.get(index).map_or(0, Range::len)
    }

    fn object(&self, index: usize) -> Result<Object, CallError> {
        parsed(self.items.get(index).map_or(&[], |item| &self.body[item.clone()]))
    }
}

/// Parses one object of a watch.
///
/// # Errors
/// It cannot be read.
pub(super) fn object(raw: &RawValue) -> Result<Object, CallError> {
    parsed(raw.get().as_bytes())
}

/// Parses one object.
///
/// # Errors
/// It cannot be read.
pub(super) fn parsed(bytes: &[u8]) -> Result<Object, CallError> {
    Object::read(bytes).map_err(CallError::malformed)
}
