//! Reads custom resources: one object, or a page of a list. It keeps one page at most, and asks for none
//! without a bound on its bytes: objects may be of any size.

use std::ops::Range;
use std::time::Instant;

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{encoded, get, if_exists};
use super::crds::{METADATA_LIST, accepting};
use super::page_budget::Reservation;
use super::{CallError, Cluster, Received, Scope};
use etch_core::api::GROUP;
use etch_core::crd::Resource;
use etch_core::engine::sweep::{self, Form, Listed};
use etch_core::object::{Identity, Object};
use etch_core::report::versions::key;
use kube_structural_schema::json::Json;

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
    pub(crate) resource_version: String,
    /// See [`sweep::Page::latest`].
    pub(super) latest: String,
    pub(crate) next: Option<String>,
    pub(crate) total: Option<u64>,
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

impl Cluster {
    /// Reads a page: the first, or the one that a token of the page before points to.
    ///
    /// When the snapshot of the first page is gone (410 with a token), the list continues with the state of
    /// now.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn page(&self, resource: &Resource, after: Option<&str>) -> Result<Page, CallError> {
        let mut retries = self.retries(&Method::GET);
        loop {
            match self.raw_page(resource, &Scope::All, Form::Whole, after).await {
                Err(error) => retries.wait_after(error).await?,
                Ok(page) => return page.parse(),
            }
        }
    }

    /// As [`Self::page`], of the objects in a scope only, in any form, and for callers that have work to do
    /// before they are parsed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn raw_page(
        &self,
        resource: &Resource,
        scope: &Scope,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        match scope {
            Scope::All => self.page_of(resource, None, form, after).await,
            Scope::Namespace(namespace) => self.page_of(resource, Some(namespace), form, after).await,
            Scope::Namespaces(namespaces) => self.page_within(resource, namespaces, form, after).await,
        }
    }

    /// A page of the objects of one namespace, or of all.
    pub(super) async fn page_of(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        match self.page_at(resource, namespace, form, after).await {
            Err(CallError::Refused(refusal)) if refusal.code == 410 && refusal.continue_token.is_some() => {
                self.page_at(resource, namespace, form, refusal.continue_token.as_deref()).await
            }
            page => page,
        }
    }

    /// A list with at most one object, of which it has the metadata: for what else a list has.
    pub(super) async fn list_of_one(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<Json, CallError> {
        let path = format!("{}?limit=1", collection(resource, namespace));
        self.call_for_json(accepting(&path, METADATA_LIST)).await
    }

    async fn page_at(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        form: Form,
        after: Option<&str>,
    ) -> Result<RawPage, CallError> {
        loop {
            let mut reservation = self.page_budget.reserve((resource.clone(), form));
            let mut path = format!("{}?limit={}", collection(resource, namespace), reservation.limit);
            if let Some(token) = after {
                path.push_str("&continue=");
                path.push_str(&encoded(token));
            }
            let request = match form {
                Form::Whole => get(&path),
                Form::Metadata => accepting(&path, METADATA_LIST),
            };
            let body = self.call_up_to(request, Some(&self.turns.pages), reservation.most()).await;
            match body.map_err(|error| own(resource, error))? {
                Some(body) => return RawPage::read(body, reservation),
                None => reservation.set_too_large(),
            }
        }
    }

    /// Reads one object; `None` if it is gone, or another one has its name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object(
        &self,
        resource: &Resource,
        identity: &Identity,
    ) -> Result<Option<Object>, CallError> {
        let found = self.object_named(resource, identity.namespace.as_deref(), &identity.name).await?;
        Ok(found.filter(|object| object.uid() == identity.uid))
    }

    /// Reads one object as soon as there is room for it; `None` if it is gone, or another one has its name.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object_with_room(
        &self,
        resource: &Resource,
        identity: &Identity,
    ) -> Result<Option<Received>, CallError> {
        let path = named(resource, identity.namespace.as_deref(), &identity.name);
        let read = if_exists(self.call_with_room(get(&path), &self.object_room(resource)).await)?;
        let received = |(body, held): (Vec<u8>, _)| Ok(Received::new(parsed(&body)?, held));
        let received = read.map(received).transpose()?;
        Ok(received.filter(|object| object.uid() == identity.uid))
    }

    /// Reads one object by its name; `None` if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn object_named(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, CallError> {
        let body = if_exists(self.call(get(&named(resource, namespace, name))).await)?;
        body.map(|body| parsed(&body)).transpose()
    }
}

impl RawPage {
    fn read(body: Vec<u8>, mut reservation: Reservation) -> Result<Self, CallError> {
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

    pub(super) fn is_empty(&self) -> bool {
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
        let objects = std::sync::Arc::new(self);
        Ok(sweep::Page { keys, resource_version, latest, next, total, read, objects })
    }

    /// Parses all objects.
    pub(super) fn parse(self) -> Result<Page, CallError> {
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

/// An error about a resource, which may be one of Etch's own.
pub(super) fn own(resource: &Resource, error: CallError) -> CallError {
    if resource.group == GROUP { error.of_own_resource() } else { error }
}

/// The path of a collection.
pub(super) fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, plural } = resource;
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", encoded(group)) };
    let (version, plural) = (encoded(version), encoded(plural));
    match namespace {
        Some(namespace) => format!("{root}/{version}/namespaces/{}/{plural}", encoded(namespace)),
        None => format!("{root}/{version}/{plural}"),
    }
}

/// The path of one object.
pub(super) fn named(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", collection(resource, namespace), encoded(name))
}

/// Parses one object of a watch.
pub(super) fn object(raw: &RawValue) -> Result<Object, CallError> {
    parsed(raw.get().as_bytes())
}

fn parsed(bytes: &[u8]) -> Result<Object, CallError> {
    Object::read(bytes).map_err(CallError::malformed)
}
