//! Where the objects of CRDs are read from: an API server, its etcd, a snapshot of one, or files.
//! It does not judge what it reads, and holds a page and the next one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::etcd::{Etcd, Snapshot, SnapshotError};
use super::page::Page;
use super::scan::scan;
use super::{CallError, Cluster, Scope};
use etch_core::crd::Resource;
use etch_core::etcd::{After, EtcdError, RawValue, identity_of, prefix_of};
use etch_core::object::{Identity, Object};

/// How many bytes and values make a page of a snapshot.
const PAGE_BYTES: usize = 4 << 20;
const PAGE_VALUES: usize = 500;

/// Where objects are read from.
pub enum ObjectSource {
    /// An API server.
    Cluster(Box<Cluster>),
    /// A running etcd, and the prefix of the API server's keys in it.
    Etcd(Etcd, String),
    /// A snapshot of etcd, and the prefix of the API server's keys in it.
    Snapshot(Arc<Snapshot>, String),
    /// Objects of files, by group and plural.
    Files(BTreeMap<(String, String), Vec<Object>>),
}

/// An object, as its source shows it.
#[derive(Debug)]
pub enum Shown {
    /// As the API server reads it: with its defaults, whether etcd holds them or not.
    View(Object),
    /// As a file has it.
    Written(Object),
    /// As etcd holds it.
    Stored(Identity, RawValue),
}

/// A part of the objects of one resource.
#[derive(Debug)]
pub struct ObjectPage {
    /// Which of the resources they are of.
    pub of: usize,
    /// The objects.
    pub objects: Vec<Shown>,
    /// How many objects the resource has, by the first page of a list; an estimate.
    pub total: Option<u64>,
}

/// The objects of resources, page by page. The pages of a resource end with its first error.
pub type ObjectPages<'a> = BoxStream<'a, Result<ObjectPage, ReadError>>;

/// Why objects cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum ReadError {
    /// From the API server.
    Call(#[from] CallError),
    /// From etcd.
    Etcd(#[from] EtcdError),
    /// From the snapshot.
    Snapshot(#[from] SnapshotError),
}

impl ObjectSource {
    /// Reads the objects of resources that are in a scope: one resource after the other, or those of a
    /// snapshot together, in one walk.
    pub fn pages<'a>(&'a self, resources: Vec<Resource>, scope: &'a Scope) -> ObjectPages<'a> {
        if let Self::Snapshot(snapshot, registry) = self {
            let prefixes = resources.iter().map(|resource| prefix_of(registry, resource)).collect();
            return walked(snapshot.clone(), prefixes, scope.clone());
        }
        let resources = stream::iter(resources.into_iter().enumerate());
        resources.flat_map(move |(of, resource)| self.pages_of(of, resource, scope)).boxed()
    }

    fn pages_of<'a>(&'a self, of: usize, resource: Resource, scope: &'a Scope) -> ObjectPages<'a> {
        match self {
            Self::Cluster(cluster) => {
                let page = move |Page { objects, total, .. }| {
                    let objects = objects.into_iter().map(Shown::View).collect();
                    ObjectPage { of, objects, total }
                };
                let pages = scan(Cluster::clone(cluster), resource, scope.clone());
                pages.map_ok(page).map_err(ReadError::from).boxed()
            }
            Self::Etcd(etcd, registry) => {
                let prefix = prefix_of(registry, &resource);
                let namespace = scope.namespace().map(|namespace| format!("{namespace}/"));
                let wanted = format!("{prefix}{}", namespace.unwrap_or_default());
                let begin: (Option<Option<After>>, _) = (Some(None), wanted);
                let pages = stream::try_unfold(begin, async |(after, wanted)| {
                    let Some(after) = after else { return Ok(None) };
                    let page = etcd.page(&wanted, after.as_ref()).await?;
                    Ok(Some((page.values, (page.next.map(Some), wanted))))
                });
                let page = move |values: Vec<RawValue>| {
                    let objects = values.into_iter().filter_map(|value| stored(&prefix, value));
                    let objects = objects.filter(|shown| shown.is_in(scope));
                    ObjectPage { of, objects: objects.collect(), total: None }
                };
                pages.map_ok(page).boxed()
            }
            Self::Files(files) => {
                let found = files.get(&(resource.group, resource.plural)).into_iter().flatten();
                let objects = found.cloned().map(Shown::Written).collect();
                stream::iter([Ok(ObjectPage { of, objects, total: None })]).boxed()
            }
            Self::Snapshot(..) => stream::empty().boxed(),
        }
    }

    /// What etcd holds of one object; `None` if it holds none, or if the source does not show etcd.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn stored(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<RawValue>, ReadError> {
        let key = |registry| match namespace {
            Some(namespace) => format!("{}{namespace}/{name}", prefix_of(registry, resource)),
            None => format!("{}{name}", prefix_of(registry, resource)),
        };
        match self {
            Self::Etcd(etcd, registry) => Ok(etcd.value(&key(registry)).await?),
            Self::Snapshot(snapshot, registry) => Ok(snapshot.value(&key(registry))?),
            Self::Cluster(_) | Self::Files(_) => Ok(None),
        }
    }
}

impl From<Cluster> for ObjectSource {
    fn from(cluster: Cluster) -> Self {
        Self::Cluster(Box::new(cluster))
    }
}

impl ObjectPage {
    /// The objects that are shown as the API server reads them.
    pub fn views(self) -> impl Iterator<Item = Object> {
        self.objects.into_iter().filter_map(|shown| match shown {
            Shown::View(object) => Some(object),
            Shown::Written(_) | Shown::Stored(..) => None,
        })
    }
}

impl ReadError {
    /// The status with which the API server refused, if it did.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Call(error) => error.code(),
            Self::Etcd(_) | Self::Snapshot(_) => None,
        }
    }
}

impl Shown {
    /// Whether what etcd holds is in a scope.
    fn is_in(&self, scope: &Scope) -> bool {
        match self {
            Self::Stored(identity, _) => scope.contains(identity.namespace.as_deref()),
            Self::View(_) | Self::Written(_) => true,
        }
    }
}

fn stored(prefix: &str, value: RawValue) -> Option<Shown> {
    let (namespace, name) = identity_of(prefix, &value.key)?;
    let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
    Some(Shown::Stored(Identity { namespace, name, uid: String::new() }, value))
}

/// What a snapshot holds under these prefixes, read by a thread that may be busy for as long as it takes.
fn walked(snapshot: Arc<Snapshot>, prefixes: Vec<String>, scope: Scope) -> ObjectPages<'static> {
    let (send, pages) = mpsc::channel(1);
    spawn_blocking(move || {
        if let Err(error) = walk(&snapshot, &prefixes, &scope, &send) {
            // This fails if the receiver is gone.
            let _ = send.blocking_send(Err(error.into()));
        }
    });
    stream::unfold(pages, async |mut pages| Some((pages.recv().await?, pages))).boxed()
}

/// Sends what a snapshot holds under these prefixes, until the receiver is gone.
fn walk(
    snapshot: &Snapshot,
    prefixes: &[String],
    scope: &Scope,
    send: &mpsc::Sender<Result<ObjectPage, ReadError>>,
) -> Result<(), SnapshotError> {
    let (mut pages, mut bytes, mut values) = (BTreeMap::<usize, Vec<Shown>>::new(), 0, 0);
    let pass_on = |pages: &mut BTreeMap<_, _>| {
        let mut pages = std::mem::take(pages).into_iter();
        let sent = pages
            .try_for_each(|(of, objects)| send.blocking_send(Ok(ObjectPage { of, objects, total: None })));
        if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let wanted = |key: &[u8]| prefixes.iter().any(|prefix| key.starts_with(prefix.as_bytes()));
    snapshot.each(&wanted, &mut |value| {
        let size = value.bytes.len();
        let found = prefixes.iter().enumerate().find(|(_, prefix)| value.key.starts_with(*prefix));
        let Some((of, shown)) = found.and_then(|(of, prefix)| Some((of, stored(prefix, value)?))) else {
            return ControlFlow::Continue(());
        };
        if shown.is_in(scope) {
            pages.entry(of).or_default().push(shown);
            (bytes, values) = (bytes + size, values + 1);
        }
        if bytes < PAGE_BYTES && values < PAGE_VALUES {
            return ControlFlow::Continue(());
        }
        (bytes, values) = (0, 0);
        pass_on(&mut pages)
    })?;
    // The last key needs no break.
    let _ = pass_on(&mut pages);
    Ok(())
}
