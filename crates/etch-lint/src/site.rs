//! A schema at its place, while walking: what is above it, and what leads there.

use serde_json::Value;

use etch_core::words::cut;
use kube_structural_schema::format;
use kube_structural_schema::json::Json;
pub(super) use kube_structural_schema::json::is_zero;
use kube_structural_schema::path::{Path, Step, TrailStep};
use kube_structural_schema::schema::Schema;

/// A node of a schema, with the way from the root through the stack frames.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) schema: &'a Schema,
    /// How this place is reached from the one above.
    pub(super) step: TrailStep<'a>,
    /// The place above; none at the root.
    pub(super) up: Option<&'a Site<'a>>,
}

/// Visits every node that values can be at, parents first.
pub(super) fn each<'a>(root: &'a Schema, visit: &mut dyn FnMut(&Site<'_>)) {
    walk(&Site { schema: root, step: TrailStep::Field(""), up: None }, visit);
}

fn walk(site: &Site<'_>, visit: &mut dyn FnMut(&Site<'_>)) {
    visit(site);
    for (name, schema) in site.schema.properties.iter() {
        walk(&Site { schema, step: TrailStep::Field(name), up: Some(site) }, visit);
    }
    if let Some(schema) = &site.schema.items {
        walk(&Site { schema, step: TrailStep::Items, up: Some(site) }, visit);
    }
    if let Some(schema) = site.schema.additional_schema() {
        walk(&Site { schema, step: TrailStep::Values, up: Some(site) }, visit);
    }
}

impl Site<'_> {
    /// The place as it is shown.
    pub(super) fn path(&self) -> Path {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(Site { step, up: up @ Some(_), .. }) = at {
            steps.push(match step {
                TrailStep::Field(name) | TrailStep::Key(name) => Step::Field((*name).to_owned()),
                TrailStep::Items | TrailStep::Index(_) => Step::Items,
                TrailStep::Values => Step::Values,
            });
            at = *up;
        }
        steps.reverse();
        Path::from(steps)
    }

    /// The name of the property; none for items, values of maps, and the root.
    pub(super) fn name(&self) -> Option<&str> {
        match self.step {
            TrailStep::Field(name) if self.up.is_some() => Some(name),
            _ => None,
        }
    }

    /// The default of this place.
    pub(super) fn default(&self) -> Option<&Value> {
        self.schema.default.as_deref()
    }

    /// Whether it is a property that the object above requires.
    pub(super) fn is_required(&self) -> bool {
        match (self.name(), self.up) {
            (Some(name), Some(up)) => requires(up.schema, name),
            _ => false,
        }
    }

    /// Whether it is below `.status`, which a controller writes and no user.
    pub(super) fn is_in_status(&self) -> bool {
        self.is_top_level("status") || self.up.is_some_and(Site::is_in_status)
    }

    /// Whether it has a default that Kubernetes itself gives it in its own types, which are copied into many
    /// CRDs.
    pub(super) fn is_copy_of_core(&self) -> bool {
        self.name().zip(self.default()).is_some_and(|(name, default)| is_default_of_core(name, default))
    }

    /// Whether it is the `name` of the whole object.
    pub(super) fn is_top_level(&self, name: &str) -> bool {
        self.name() == Some(name) && self.up.is_some_and(|up| up.up.is_none())
    }
}

/// Whether Kubernetes itself gives a field of this name this default.
pub(super) fn is_default_of_core(name: &str, default: &Value) -> bool {
    match name {
        "protocol" => default == "TCP",
        "name" => default == "",
        _ => false,
    }
}

/// Whether a schema requires a property by name.
pub(super) fn requires(schema: &Schema, name: &str) -> bool {
    schema
        .constraints
        .as_ref()
        .is_some_and(|constraints| constraints.required.iter().any(|known| known == name))
}

/// A default in a message, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    cut(&String::from_utf8_lossy(&Json::from(value.clone()).to_vec()), LONGEST)
}

/// Whether the server checks values of a type against a format.
///
/// Source: apiextensions-apiserver `pkg/apiserver/validation/formats.go`, `GetUnrecognizedFormats`.
pub(super) fn is_known_format(kind: &str, name: &str) -> bool {
    match kind {
        "" | "string" => format::check(name).is_some(),
        "integer" => matches!(name, "int32" | "int64"),
        "number" => matches!(name, "float" | "double"),
        _ => false,
    }
}
