//! The markers that give a field or a type its default.

use super::kubebuilder;
use super::package::{Marker, Packages};
use super::quote::cut;
use kube_structural_schema::json::Json;

/// Whose marker it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// `+k8s:default=`: JSON or a reference. No generator of CRDs reads it.
    Declarative,
    /// `+default=`: JSON or a reference (KEP-1929, Marker format).
    Kubernetes,
    /// `+kubebuilder:default=`: controller-gen's own syntax. It comes before the others there.
    Kubebuilder,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kubebuilder, Self::Kubernetes, Self::Declarative];

    /// The name of its marker.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Declarative => "k8s:default",
            Self::Kubernetes => "default",
            Self::Kubebuilder => "kubebuilder:default",
        }
    }

    /// The source that a marker belongs to; `None` if it is not a marker of a default.
    pub fn of(marker: &Marker) -> Option<Self> {
        Self::ALL.into_iter().find(|source| marker.is(source.marker()))
    }
}

/// A default that a marker gives.
#[derive(Debug)]
pub struct MarkedDefault<'a> {
    /// The marker.
    pub marker: &'a Marker,
    /// Whose it is.
    pub source: Source,
    /// Whether it names a constant, which controller-gen skips.
    pub is_reference: bool,
    /// Whether controller-gen drops a word of it.
    pub is_cut: bool,
    /// The value; `None` if it is a constant that is not known.
    pub value: Result<Option<Json>, Unreadable>,
}

/// Why a marker gives no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// The defaults among the markers of a field or a type, the strongest one first: of a marker that is there
/// twice, the last one. `package` is where references without one lead.
pub fn defaults<'a>(markers: &'a [Marker], packages: &Packages, package: &str) -> Vec<MarkedDefault<'a>> {
    let mut defaults: Vec<_> =
        markers.iter().rev().filter_map(|marker| read(marker, packages, package)).collect();
    defaults.sort_by_key(|default| std::cmp::Reverse(default.source));
    defaults
}

fn read<'a>(marker: &'a Marker, packages: &Packages, package: &str) -> Option<MarkedDefault<'a>> {
    let source = Source::of(marker)?;
    let text = marker.value.as_deref().unwrap_or_default();
    if source == Source::Kubebuilder {
        let read = kubebuilder::parse(text);
        let is_cut = read.as_ref().is_ok_and(|read| read.is_cut);
        let value = read.map(|read| Some(Json::from(read.value))).map_err(Unreadable);
        return Some(MarkedDefault { marker, source, is_reference: false, is_cut, value });
    }
    let text = text.trim();
    let reference = text.strip_prefix("ref(").and_then(|rest| rest.strip_suffix(')'));
    let value = match reference {
        Some(reference) => constant(reference.trim(), packages, package),
        None => json(text).map(Some),
    };
    Some(MarkedDefault { marker, source, is_reference: reference.is_some(), is_cut: false, value })
}

fn json(text: &str) -> Result<Json, Unreadable> {
    if text.is_empty() {
        return Err(Unreadable("it has no value".to_owned()));
    }
    match Json::parse(text.as_bytes()) {
        Ok(json) if json.is_null() => Err(Unreadable("null is not a default".to_owned())),
        Ok(json) => Ok(json),
        Err(_) => Err(Unreadable(format!("{} is not JSON", cut(text)))),
    }
}

/// `Name` or `import/path.Name`.
fn constant(reference: &str, packages: &Packages, package: &str) -> Result<Option<Json>, Unreadable> {
    let (path, name) = match reference.rsplit_once('.') {
        Some((path, name)) => (path, name),
        None => (package, reference),
    };
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !is_name {
        return Err(Unreadable(format!("{} names no constant", cut(reference))));
    }
    match packages.get(path) {
        Some(known) if !known.constants.contains_key(name) => {
            Err(Unreadable(format!("{path} has no constant {name}")))
        }
        // A package elsewhere may have it.
        _ => Ok(packages.constant(path, name).map(Json::from)),
    }
}
