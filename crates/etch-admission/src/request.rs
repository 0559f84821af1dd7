//! A request as an API server sends it, and what a schema looks at in it.

use serde_json::Value;

use super::compile::{Compiled, Target};
use super::former::{Extension, extensions};
use super::place::{Location, value_at};
use super::run::{Failure, Run};
use super::scope::{Bound, SELF};
use super::spec::{self, Operation};

/// Which resource a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'r> {
    /// As the API server names it.
    Resource {
        /// The group; empty for the core group.
        group: &'r str,
        /// The version.
        version: &'r str,
        /// The plural.
        resource: &'r str,
    },
    /// By the object's own `apiVersion` and `kind`, as for files.
    Kind,
}

/// The request to be judged.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// What it is about.
    pub named: Named<'r>,
    /// What it does.
    pub operation: Operation,
    /// The object as it is to be stored.
    pub object: &'r Value,
    /// The object that it replaces; none on CREATE.
    pub old_object: Option<&'r Value>,
    /// All facts that the schema declares; see [`Compiled::facts`].
    pub facts: &'r Value,
    /// Whether an object exists, by group, resource, namespace and name; `None` if that is not known.
    pub exists: &'r dyn Fn(&Lookup<'_>) -> Option<bool>,
}

/// An object that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup<'l> {
    /// The group; empty for the core group.
    pub group: &'l str,
    /// The version.
    pub version: &'l str,
    /// The plural.
    pub resource: &'l str,
    /// The namespace; empty for none.
    pub namespace: &'l str,
    /// The name.
    pub name: &'l str,
}

/// The part of a request that a schema is about.
#[derive(Debug)]
pub(super) struct Subject<'c> {
    pub(super) target: &'c Target,
    pub(super) extensions: Vec<Extension>,
}

impl Compiled {
    /// The part of a request that this schema is about; `None` if there is none. If `when` cannot be
    /// evaluated, the schema does not apply; whether only its cost is why, the run shows.
    pub(super) fn subject<'c>(&'c self, request: &Request<'_>, run: &mut Run<'_>) -> Option<Subject<'c>> {
        let target = self.target(request)?;
        let found = extensions_of(target, request);
        let bare = found.is_empty();
        let extensions: Vec<Extension> = found
            .into_iter()
            .filter(|(_, value)| self.applies(request, value, run))
            .map(|(extension, _)| extension)
            .collect();
        let applies = if bare { self.applies(request, &Value::Null, run) } else { !extensions.is_empty() };
        applies.then_some(Subject { target, extensions })
    }

    /// The extensions of a request, whatever `when` is for them.
    pub(super) fn all_extensions(&self, request: &Request<'_>) -> Vec<Extension> {
        let target = self.target(request).into_iter();
        target.flat_map(|target| extensions_of(target, request)).map(|(extension, _)| extension).collect()
    }

    /// The target that a request is about.
    pub(super) fn target(&self, request: &Request<'_>) -> Option<&Target> {
        self.targets.iter().find(|target| target.is_for(request))
    }

    /// Whether this schema is for a request. It counts as such if that cannot be determined because a fact is
    /// missing.
    pub fn is_for(&self, request: &Request<'_>) -> bool {
        let Some(target) = self.target(request) else { return false };
        let mut run = Run::new(self);
        let found = target.place.find(request.object, &Location::new());
        let found = found.into_iter().map(|(_, value)| value).filter(|value| !value.is_null());
        let extensions: Vec<&Value> = found.collect();
        let bare = extensions.is_empty().then_some(&Value::Null);
        extensions
            .into_iter()
            .chain(bare)
            .any(|extension| self.when(request, extension, &mut run).unwrap_or(true))
    }

    /// Whether one of its targets is the resource of a request, whatever `when` is for the object.
    pub fn targets(&self, request: &Request<'_>) -> bool {
        self.target(request).is_some()
    }

    /// Its targets as `machines of machine.openshift.io/v1beta1`; with the kind, if it is declared.
    pub fn targets_in_words(&self) -> impl Iterator<Item = String> {
        self.targets.iter().map(Target::in_words)
    }

    fn applies(&self, request: &Request<'_>, extension: &Value, run: &mut Run<'_>) -> bool {
        self.when(request, extension, run).unwrap_or_default()
    }

    /// The result of `when`; `None` if it cannot be evaluated.
    fn when(&self, request: &Request<'_>, extension: &Value, run: &mut Run<'_>) -> Option<bool> {
        let Some(when) = &self.when else { return Some(true) };
        let mut values = Bound::of(request).values();
        // In this scope the extension stands in the place of `self`.
        values[SELF] = Some(extension);
        let holds = run.holds(when, &values);
        if holds.as_ref().is_err_and(Failure::is_too_expensive) {
            run.exhaust();
        }
        holds.ok()
    }
}

/// The extensions that an object has, each with the value there.
fn extensions_of<'v>(target: &Target, request: &Request<'v>) -> Vec<(Extension, &'v Value)> {
    let mut found = extensions(&target.place, request.object, request.old_object);
    found.retain(|(_, value)| !value.is_null());
    found
}

impl Subject<'_> {
    /// The place of its extensions as errors write it, without indices.
    pub(super) fn field(&self) -> String {
        let path = &self.target.declared;
        path.reported_as.clone().unwrap_or_else(|| path.path.trim_start_matches('.').to_owned())
    }
}

impl Target {
    fn is_for(&self, request: &Request<'_>) -> bool {
        let declared = &self.declared;
        match request.named {
            Named::Resource { group, version, resource } => {
                (&*declared.group, &*declared.version, &*declared.resource) == (group, version, resource)
            }
            Named::Kind => {
                let text =
                    |field: &str| request.object.get(field).and_then(Value::as_str).unwrap_or_default();
                let api_version = text("apiVersion");
                let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
                let kind = text("kind");
                let is_kind = match &declared.kind {
                    Some(declared) => declared == kind,
                    None => plural(kind) == declared.resource,
                };
                is_kind && (&*declared.group, &*declared.version) == (group, version)
            }
        }
    }

    fn in_words(&self) -> String {
        let spec::Target { group, version, resource, kind, .. } = &self.declared;
        let kind = kind.as_ref().map(|kind| format!(" (kind {kind})")).unwrap_or_default();
        match group.as_str() {
            "" => format!("{resource} of {version}{kind}"),
            group => format!("{resource} of {group}/{version}{kind}"),
        }
    }

    /// The place of an extension as errors write it.
    pub(super) fn written(&self, location: &Location) -> String {
        match &self.declared.reported_as {
            Some(text) => super::place::with_indices(text, super::place::indices(location)),
            None => super::place::written(location),
        }
    }
}

impl<'v> Bound<'v> {
    pub(super) fn of(request: &Request<'v>) -> Self {
        Self {
            object: Some(request.object),
            old_object: Some(request.old_object.unwrap_or(&Value::Null)),
            facts: Some(request.facts),
            ..Self::default()
        }
    }

    /// The inputs for an extension of the object.
    pub(super) fn extension(self, extension: &Extension) -> Self {
        let own = self.object.and_then(|object| value_at(object, &extension.at));
        let former = extension.former.as_ref().zip(self.old_object);
        Self { own, old: former.and_then(|(former, old)| value_at(old, former)), ..self }
    }
}

/// The usual plural of a kind, as kubectl guesses it.
pub fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    if kind.ends_with(['s', 'x']) || kind.ends_with("ch") {
        format!("{kind}es")
    } else if let Some(stem) =
        kind.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']))
    {
        format!("{stem}ies")
    } else {
        format!("{kind}s")
    }
}
