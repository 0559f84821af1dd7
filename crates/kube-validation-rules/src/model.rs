//! What expressions may use of a schema: the fields they can name, and what the values below them are.
//!
//! Source: apiserver `pkg/cel/common/{schemas,valuesunstructured}.go`, `SchemaDeclType` and
//! `UnstructuredToVal`.

use std::collections::BTreeMap;

use kube_structural_schema::schema::{Additional, Constraints, Schema, SchemaType};

use super::extent::Extent;
use super::names;

/// The longest `metadata.name`; what is generated needs one character more than its prefix.
///
/// Source: apimachinery `pkg/util/validation`, `DNS1123SubdomainMaxLength`.
const MAX_NAME: i64 = 253;

/// One node of a schema. Its address is the identity of its type: two objects of the same shape are of
/// different types.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) shape: Shape,
    pub(super) nullable: bool,
    /// Whether expressions can name this node's values; where not, upstream has no declaration for it.
    pub(super) declared: bool,
    pub(super) extent: Extent,
    /// Whether this is the server's own declaration of `metadata`.
    is_own: bool,
    /// The properties that a node which is not an object names: rules still run there if they have no
    /// spelling, or if upstream takes the node for an object of its own.
    pub(super) strays: BTreeMap<Box<str>, Node>,
}

/// What the values of a node are.
#[derive(Debug)]
pub(super) enum Shape {
    /// An integer or a text, known only at run time.
    IntOrString,
    /// An object with named fields.
    Object(Fields),
    /// A map from texts.
    Map(Box<Node>),
    Array {
        /// `None` if the schema does not describe the items.
        items: Option<Box<Node>>,
        order: Order,
    },
    Text(Format),
    Bool,
    Integer,
    Number,
    /// Anything, as what it is: a value outside any schema. Types are known only at run time.
    Dynamic,
    /// Anything, with `x-kubernetes-preserve-unknown-fields` and no type.
    Unknown,
    /// A schema without a type; no value of it can be read.
    Invalid,
}

/// The fields of an object, by property name.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// All that the schema names.
    pub(super) named: BTreeMap<Box<str>, Node>,
    /// Whether the schema names any fields; an object without is taken for a map of unknown values.
    pub(super) structured: bool,
    /// `additionalProperties` beside fields, which only a schema that is not structural has: such an object
    /// is declared as a map of those, yet has the values of its fields alone.
    pub(super) entries: Option<Box<Node>>,
    /// The schema's nodes for `apiVersion`, `kind` and `metadata` of a resource root, where upstream's own
    /// declarations have taken their place. The rules stated there are compiled for those, but run over
    /// values as the schema has them.
    pub(super) stated: BTreeMap<Box<str>, Node>,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    Atomic,
    Set,
    /// With the keys, spelled as identifiers where they have such a spelling.
    Map(Box<[Box<str>]>),
    /// None of those: no value of the list can be read.
    Invalid,
}

/// The `format` of a text, as far as it makes it something else than a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    None,
    Byte,
    Duration,
    Date,
    DateTime,
}

impl Node {
    /// The node of a schema. A resource root has `apiVersion`, `kind` and the names in `metadata` whatever
    /// the schema declares.
    pub(super) fn new(schema: &Schema, resource_root: bool) -> Self {
        let shape = Shape::new(schema, resource_root);
        let mut strays = BTreeMap::new();
        if !matches!(shape, Shape::Object(_)) {
            strays = nodes(schema).collect();
        }
        // What upstream adds to a resource root makes it lose its items.
        let itemless = resource_root && schema.kind == SchemaType::Array && !names_itself(schema);
        let declared = shape.is_declared() && (schema.int_or_string || !itemless);
        let adds = resource_root && !names_itself(schema);
        let own = |name: &str| adds && matches!(name, "apiVersion" | "kind" | "metadata");
        let extent = extent(schema, &shape, own);
        Self { declared, shape, nullable: schema.nullable, extent, is_own: false, strays }
    }

    /// The node of values that no schema describes, and of all below them.
    pub(super) fn dynamic() -> Self {
        Self {
            shape: Shape::Dynamic,
            nullable: true,
            declared: true,
            extent: Extent::UNKNOWN,
            is_own: false,
            strays: BTreeMap::new(),
        }
    }

    /// The node of an object with these fields, of whose values nothing is known.
    pub(super) fn of_fields(names: &[&str]) -> Self {
        let named = names.iter().map(|name| ((*name).into(), Self::dynamic())).collect();
        let fields = Fields { named, structured: true, entries: None, stated: BTreeMap::new() };
        let mut node = Self::dynamic();
        (node.shape, node.nullable, node.extent) = (Shape::Object(fields), false, Extent::default());
        node
    }

    fn text(max_length: Option<i64>) -> Self {
        let extent = Extent::of_text(max_length);
        Self {
            shape: Shape::Text(Format::None),
            nullable: false,
            declared: true,
            extent,
            is_own: false,
            strays: BTreeMap::new(),
        }
    }

    /// Takes back that names in the metadata that the server declares itself have a longest length.
    pub(super) fn unbound_names(&mut self) {
        match &mut self.shape {
            Shape::Object(fields) => {
                let own = fields.named.get_mut("metadata").filter(|metadata| metadata.is_own);
                if let Some(Shape::Object(metadata)) = own.map(|metadata| &mut metadata.shape) {
                    metadata.named.values_mut().for_each(|name| name.extent = Extent::of_text(None));
                }
                let entries = fields.entries.as_deref_mut();
                fields.named.values_mut().chain(entries).for_each(Self::unbound_names);
            }
            Shape::Map(values) => values.unbound_names(),
            Shape::Array { items: Some(items), .. } => items.unbound_names(),
            _ => {}
        }
    }

    /// The declaration of the items of a list or the values of a map.
    pub(super) fn element(&self) -> Option<&Self> {
        let element = match &self.shape {
            Shape::Array { items, .. } => items.as_deref(),
            Shape::Map(values) => Some(&**values),
            Shape::Object(fields) => fields.entries.as_deref(),
            _ => None,
        };
        element.filter(|element| element.declared)
    }

    /// Whether the declaration is a map's.
    pub(super) fn is_map(&self) -> bool {
        matches!(&self.shape, Shape::Map(_) | Shape::Object(Fields { entries: Some(_), .. }))
    }

    /// The declaration of the field that is spelled exactly this way, reserved words escaped.
    pub(super) fn declared_field(&self, identifier: &str) -> Option<&Self> {
        let name = names::unescape(identifier)?;
        (names::escape(&name)? == identifier).then(|| self.property(&name)).flatten()
    }

    /// The declaration of a property, if expressions can name it.
    pub(super) fn property(&self, name: &str) -> Option<&Self> {
        let Shape::Object(fields) = &self.shape else { return None };
        let declared = fields.entries.is_none() && names::escape(name).is_some();
        fields.named.get(name).filter(|field| declared && field.declared)
    }

    /// The field of an object that expressions spell this way.
    pub(super) fn field(&self, identifier: &str) -> Option<&Self> {
        let Shape::Object(fields) = &self.shape else { return None };
        let name = names::unescape(identifier)?;
        let spelled = names::escape(&name)?;
        // Since 1.31 reserved words need no escaping behind a point, where the grammar takes them.
        let reserved = names::is_reserved(identifier) && *name == *identifier;
        (spelled == identifier || reserved)
            .then(|| fields.named.get(&*name))
            .flatten()
            .filter(|field| field.declared)
    }
}

impl Shape {
    fn new(schema: &Schema, resource_root: bool) -> Self {
        if schema.int_or_string {
            return Self::IntOrString;
        }
        match schema.kind {
            SchemaType::Object => Self::object(schema, resource_root),
            SchemaType::Array => Self::Array {
                items: schema
                    .items
                    .as_deref()
                    .map(|items| Box::new(Node::new(items, items.embedded_resource))),
                order: Order::new(schema),
            },
            SchemaType::String => Self::Text(Format::new(schema)),
            SchemaType::Boolean => Self::Bool,
            SchemaType::Integer => Self::Integer,
            SchemaType::Number => Self::Number,
            SchemaType::Unset | SchemaType::Other(_) if schema.preserve_unknown_fields => Self::Unknown,
            SchemaType::Unset | SchemaType::Other(_) => Self::Invalid,
        }
    }

    fn object(schema: &Schema, resource_root: bool) -> Self {
        match &schema.additional {
            Some(Additional::Schema(values)) if schema.properties.is_empty() && !resource_root => {
                Self::Map(Box::new(Node::new(values, values.embedded_resource)))
            }
            _ => Self::Object(Fields::new(schema, resource_root)),
        }
    }

    /// Whether upstream has a declaration for such a node.
    fn is_declared(&self) -> bool {
        match self {
            Self::Map(values) => values.declared,
            Self::Object(fields) => fields.entries.as_ref().is_none_or(|entries| entries.declared),
            Self::Array { items, .. } => items.as_ref().is_some_and(|items| items.declared),
            Self::Unknown | Self::Invalid => false,
            _ => true,
        }
    }
}

/// The sizes of the values of a schema; `own` returns whether a field is the server's declaration and not the
/// schema's.
fn extent(schema: &Schema, shape: &Shape, own: impl Fn(&str) -> bool) -> Extent {
    let none = Constraints::default();
    let constraints = schema.constraints.as_deref().unwrap_or(&none);
    match shape {
        Shape::IntOrString => Extent::of_int_or_string(constraints.max_length),
        Shape::Array { items, .. } => {
            let item = items.as_ref().map(|items| items.extent).unwrap_or_default();
            Extent::of_list(item, constraints.max_items)
        }
        Shape::Map(values) | Shape::Object(Fields { entries: Some(values), .. }) => {
            Extent::of_map(values.extent, constraints.max_properties)
        }
        Shape::Object(fields) => {
            let defaulted = |name: &str| {
                !own(name) && schema.properties.get(name).is_some_and(|field| field.default.is_some())
            };
            let is_required = |name: &str| constraints.required.iter().any(|required| required == name);
            let required = fields
                .named
                .iter()
                .filter(|(name, node)| node.declared && is_required(name) && !defaulted(name));
            Extent::of_object(required.map(|(name, node)| (&**name, node.extent)))
        }
        Shape::Text(Format::Byte) => Extent::of_bytes(constraints.max_length),
        Shape::Text(Format::Duration) => Extent::DURATION,
        Shape::Text(Format::Date) => Extent::DATE,
        Shape::Text(Format::DateTime) => Extent::DATE_TIME,
        Shape::Text(Format::None) if constraints.max_length.is_none() && !constraints.allowed.is_empty() => {
            Extent::of_enum(constraints.allowed.iter().filter_map(|value| value.as_str()))
        }
        Shape::Text(Format::None) => Extent::of_text(constraints.max_length),
        Shape::Bool => Extent::BOOL,
        Shape::Integer | Shape::Number => Extent::NUMBER,
        Shape::Dynamic | Shape::Unknown | Shape::Invalid => Extent::default(),
    }
}

/// The nodes of a schema's properties.
fn nodes(schema: &Schema) -> impl Iterator<Item = (Box<str>, Node)> {
    schema
        .properties
        .iter()
        .map(|(name, property)| (name.into(), Node::new(property, property.embedded_resource)))
}

impl Fields {
    fn new(schema: &Schema, resource_root: bool) -> Self {
        let mut named: BTreeMap<Box<str>, Node> = nodes(schema).collect();
        let mut stated = BTreeMap::new();
        if resource_root && !names_itself(schema) {
            let metadata = Node::object_meta(schema.properties.get("metadata"));
            for (name, own) in
                [("kind", Node::text(None)), ("apiVersion", Node::text(None)), ("metadata", metadata)]
            {
                stated.extend(named.insert(name.into(), own).map(|node| (name.into(), node)));
            }
        }
        let entries =
            schema.additional_schema().map(|entries| Box::new(Node::new(entries, entries.embedded_resource)));
        Self { structured: !named.is_empty(), named, entries, stated }
    }
}

impl Node {
    /// The server's own declaration of `metadata`, with shorter names if the schema limits them.
    fn object_meta(stated: Option<&Schema>) -> Self {
        let named = [("name", MAX_NAME), ("generateName", MAX_NAME - 1)].map(|(name, max)| {
            let stated = stated.and_then(|metadata| metadata.properties.get(name));
            let length =
                stated.and_then(|name| name.constraints.as_ref()?.max_length).map_or(max, |it| it.min(max));
            (name.into(), Self::text(Some(length)))
        });
        let fields = Fields { named: named.into(), structured: true, entries: None, stated: BTreeMap::new() };
        let extent = Extent { bytes: 2, ..Extent::default() };
        Self {
            shape: Shape::Object(fields),
            nullable: false,
            declared: true,
            extent,
            is_own: true,
            strays: BTreeMap::new(),
        }
    }
}

/// Whether a root declares all that upstream would add; then it is left as it is.
fn names_itself(schema: &Schema) -> bool {
    let is = |schema: &Schema, name: &str, kind: SchemaType| {
        schema.properties.get(name).is_some_and(|property| property.kind == kind)
    };
    is(schema, "kind", SchemaType::String)
        && is(schema, "apiVersion", SchemaType::String)
        && schema.properties.get("metadata").is_some_and(|metadata| {
            metadata.kind == SchemaType::Object
                && is(metadata, "name", SchemaType::String)
                && is(metadata, "generateName", SchemaType::String)
        })
}

impl Order {
    fn new(schema: &Schema) -> Self {
        match schema.list_type.as_deref() {
            None | Some("" | "atomic") => Self::Atomic,
            Some("set") => Self::Set,
            Some("map") => Self::Map(
                schema
                    .list_map_keys
                    .iter()
                    .map(|key| names::escape(key).map_or_else(|| key.as_str().into(), Box::from))
                    .collect(),
            ),
            Some(_) => Self::Invalid,
        }
    }
}

impl Format {
    fn new(schema: &Schema) -> Self {
        match schema.constraints.as_ref().map(|constraints| &*constraints.format) {
            Some("byte") => Self::Byte,
            Some("duration") => Self::Duration,
            Some("date") => Self::Date,
            Some("date-time") => Self::DateTime,
            _ => Self::None,
        }
    }
}
