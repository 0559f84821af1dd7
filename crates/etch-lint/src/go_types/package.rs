//! What a reader of Go sources finds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

/// Packages by their import path.
#[derive(Debug, Default)]
pub struct Packages(pub BTreeMap<String, Package>);

/// The files of one folder.
#[derive(Debug, Default)]
pub struct Package {
    /// The import path; the folder if no `go.mod` gives one.
    pub path: String,
    /// The name in its package clauses.
    pub name: String,
    /// Whether it was requested, and not just imported by one that was.
    pub is_asked: bool,
    /// Whether a marker of controller-gen is in it. Otherwise its schemas come from kube-openapi, as those of
    /// `k8s.io/api`.
    pub is_kubebuilder: bool,
    /// The markers that belong to no type.
    pub markers: Vec<Marker>,
    /// Its types by name.
    pub types: BTreeMap<String, Declaration>,
    /// Its constants by name.
    pub constants: BTreeMap<String, Constant>,
    /// The types that write or read their JSON themselves.
    pub custom: BTreeMap<String, Methods>,
    /// The import paths whose names its files use without a qualifier (`import . "path"`).
    pub dots: BTreeSet<String>,
}

/// The methods by which a type takes its JSON, or its schema, into its own hands.
#[derive(Debug, Default)]
pub struct Methods {
    /// Whether one of them writes its JSON.
    pub is_writer: bool,
    /// The one that does; `None` if it may write null.
    pub writer: Option<Writer>,
}

/// A method that writes JSON, and no null as far as it shows.
#[derive(Debug, Default)]
pub struct Writer {
    /// The string literals in it.
    pub literals: BTreeSet<String>,
    /// The names in it, some of which may be constants.
    pub names: BTreeSet<String>,
    /// Whether it looks up nothing, and calls nothing that may name values: `String()`, a table.
    pub is_plain: bool,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file as it was found.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
}

/// A declared type.
#[derive(Debug)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub at: Spot,
    /// The markers above it.
    pub markers: Vec<Marker>,
    /// What it is declared as.
    pub kind: Type,
    /// Whether it is only another name (`type A = B`), which has the methods of what it names.
    pub is_alias: bool,
}

/// A type where it is used.
#[derive(Debug)]
pub enum Type {
    /// A declared or predeclared one.
    Named(TypeName),
    /// `*T`
    Pointer(Box<Self>),
    /// `[]T`
    List(Box<Self>),
    /// `[N]T`
    Array(Box<Self>, Constant),
    /// `map[K]T`
    Map(Box<Self>),
    /// `struct { … }`
    Struct(Vec<Field>),
    /// The parameter of the generic type around it, counted from 0.
    Parameter(usize),
    /// An interface, function or channel, or a type that is nested too deep.
    Other,
}

/// The name of a type.
#[derive(Debug)]
pub struct TypeName {
    /// The import path of its package: that of the file's own where it has no qualifier.
    pub package: String,
    /// The name in the package.
    pub name: String,
    /// What the parameters of a generic type stand for.
    pub arguments: Vec<Type>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name in Go; that of the type where it is embedded.
    pub name: String,
    /// Where it stands.
    pub at: Spot,
    /// Whether it is embedded.
    pub is_embedded: bool,
    /// Its `json` tag; `None` if it has none.
    pub tag: Option<JsonTag>,
    /// The markers above it.
    pub markers: Vec<Marker>,
    /// Other comments that mention a default.
    pub remarks: Vec<Remark>,
    /// Its type.
    pub kind: Type,
}

/// A comment that is not a marker.
#[derive(Clone, Debug)]
pub struct Remark {
    /// Its text, without the slashes.
    pub text: String,
    /// Where it stands.
    pub at: Spot,
    /// Where it stands in view of the field.
    pub place: Place,
}

/// Where a comment stands in view of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Above it.
    Above,
    /// Above it, between `/*` and `*/`.
    Block,
    /// Above it, with two other comments in between.
    Far,
    /// Behind it, on the same line.
    Behind,
}

/// A `json` tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonTag {
    /// The name; empty where the tag gives none.
    pub name: String,
    /// Whether the field is left out: the tag is `-`.
    pub is_skipped: bool,
    /// `omitempty`
    pub omitempty: bool,
    /// `omitzero`, which leaves out structs as well.
    pub omitzero: bool,
    /// `inline`
    pub inline: bool,
}

/// A comment `// +name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// What is before the first `=`, as it is written: `default`, `kubebuilder:default`.
    pub name: String,
    /// What is behind it; `None` if there is no `=`.
    pub value: Option<String>,
    /// Where it stands.
    pub at: Spot,
}

/// A constant expression.
#[derive(Debug)]
pub enum Constant {
    /// A literal, or `iota`.
    Literal(Value),
    /// Another constant, by the import path of its package and its name.
    Reference(String, String),
    /// A value of a type: `T(value)`, which may also be a call of `len`, or `const A T = value`.
    Typed {
        /// The type.
        kind: Box<Type>,
        /// What is converted.
        value: Box<Self>,
        /// Whether it is `T(value)`.
        is_call: bool,
    },
    /// An operator before an operand.
    Unary(String, Box<Self>),
    /// An operator between two operands.
    Binary(String, Box<Self>, Box<Self>),
    /// Another one, whose value is not known.
    Computed,
}

impl Packages {
    /// A package by its import path.
    pub fn get(&self, path: &str) -> Option<&Package> {
        self.0.get(path)
    }

    /// The requested packages.
    pub fn asked(&self) -> impl Iterator<Item = &Package> {
        self.0.values().filter(|package| package.is_asked)
    }
}

impl Type {
    /// The type of a name, without arguments.
    pub(super) fn named(package: &str, name: &str) -> Self {
        Self::Named(TypeName { package: package.to_owned(), name: name.to_owned(), arguments: Vec::new() })
    }
}

impl Marker {
    /// Whether it is the marker of this name, as controller-gen looks it up: where there is a value, the last
    /// part of a name may be the name of an argument, and in `name:=value` that is empty. Spaces and case
    /// count.
    pub fn is(&self, name: &str) -> bool {
        let has_argument =
            || self.value.is_some() && self.name.rsplit_once(':').is_some_and(|(before, _)| before == name);
        self.name == name || has_argument()
    }

    /// Whether it gives a schema another type than that of its Go type, which an object is.
    pub fn replaces_object(&self) -> bool {
        let is_object = self.value.as_deref().is_some_and(|value| value.trim().trim_matches('"') == "object");
        self.is("kubebuilder:validation:Type") && !is_object
    }
}

impl Package {
    /// Whether a marker stands on its own in one of the files.
    pub fn has_marker(&self, name: &str) -> bool {
        has(&self.markers, name)
    }
}

impl Declaration {
    /// Whether it is the type of whole objects, or of templates of them: both have metadata.
    pub fn is_object(&self) -> bool {
        let Type::Struct(fields) = &self.kind else { return false };
        fields.iter().any(|field| field.json_name() == Some("metadata"))
    }
}

impl Field {
    /// Whether a marker stands above it.
    pub fn has_marker(&self, name: &str) -> bool {
        has(&self.markers, name)
    }

    /// Whether its fields are those of the struct around it.
    pub fn is_inline(&self) -> bool {
        match &self.tag {
            Some(tag) => tag.inline || self.is_embedded && tag.name.is_empty(),
            None => self.is_embedded,
        }
    }

    /// The name in JSON; `None` if it is not part of it.
    pub fn json_name(&self) -> Option<&str> {
        let is_exported = self.name.chars().next().is_some_and(char::is_uppercase);
        match &self.tag {
            _ if self.is_inline() || !is_exported => None,
            Some(tag) if tag.is_skipped => None,
            Some(tag) if !tag.name.is_empty() => Some(&tag.name),
            _ => Some(&self.name),
        }
    }

    /// Whether Go leaves it out where its value is empty. It never does that to a struct.
    pub fn omits_empty(&self) -> bool {
        self.tag.as_ref().is_some_and(|tag| tag.omitempty || tag.omitzero)
    }

    /// Whether a schema that is generated from it requires it, as controller-gen decides.
    pub fn is_required(&self, package: &Package) -> bool {
        let is_marked = |names: &[&str]| names.iter().any(|name| self.has_marker(name));
        if self.has_marker("kubebuilder:validation:Optional") {
            false
        } else if self.has_marker("kubebuilder:validation:Required") {
            true
        } else if is_marked(&["optional", "k8s:optional"]) {
            false
        } else if is_marked(&["required", "k8s:required"]) {
            true
        } else {
            !package.has_marker("kubebuilder:validation:Optional") && !self.omits_empty()
        }
    }
}

fn has(markers: &[Marker], name: &str) -> bool {
    markers.iter().any(|marker| marker.is(name))
}
