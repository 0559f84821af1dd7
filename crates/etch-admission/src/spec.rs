//! What an `EmbeddedSchema` declares, as its author writes it.
//! `compile` finds out whether it can be served.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::Webhooks;
use etch_core::described;
use kube_structural_schema::json::has_field;

/// The places of an extension, the facts that it needs, and its types, defaults and rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct Declaration {
    /// The places of the extension: one entry for each resource that holds it.
    #[schemars(length(min = 1, max = 50))]
    pub targets: Vec<Target>,
    /// Values from the cluster that expressions can use, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub facts: Vec<Fact>,
    /// When the schema applies: CEL over `object`, `oldObject` (null on CREATE), `facts`, and, if there is an
    /// extension, `extension` (its `apiVersion`, `kind` and all other fields, unchanged). Always, if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub when: Option<String>,
    /// The schema of the extension: types, restrictions, defaults and rules, in the schema language of CRDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<ExtensionSchema>,
    /// What Etch does with fields of the extension that the schema does not have. `Keep` (the default):
    /// nothing. `Warn`: warn about each. `Deny`: report each as an error. `Prune`: remove them when it sets
    /// defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_fields: Option<UnknownFields>,
    /// Refuse objects that lack the extension. If not set, they pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Required>,
    /// The operations on which Etch sets defaults: `[CREATE]` if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub default_on: Vec<Operation>,
    /// Defaults that a schema cannot express. Etch sets them in this order, after those of the schema. Each
    /// default sees the values that the ones before it have set. None changes a value that is present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub defaults: Vec<DefaultValue>,
    /// Rules that a schema cannot express.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub rules: Vec<Rule>,
    /// Objects that should exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub references: Vec<Reference>,
    /// Whether Etch judges updates by what they change: `Enabled` (the default) or `Disabled`. If enabled, an
    /// update that does not change the extension, that only removes finalizers, or that is for an object
    /// which is being deleted passes, and a violation that the old object already had is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratcheting: Option<Ratcheting>,
    /// What a violation causes. `Warn` (the default): the request passes with a warning. `Deny`: the request
    /// is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// What Etch does with defaults that existing objects lack: nothing (`LeaveAlone`, the default), or it
    /// stores them (`Persist`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<OnExisting>,
    /// How the API server calls the webhooks for the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
}

impl Declaration {
    /// Whether it can change an object. A field of the schema that is called `default` counts as a default,
    /// too.
    pub fn sets_values(&self) -> bool {
        let schema = self.schema.as_ref().map(|schema| &schema.open_api_v3_schema);
        !self.defaults.is_empty()
            || self.unknown_fields == Some(UnknownFields::Prune)
            || schema.is_some_and(|schema| has_field(schema, "default"))
    }
}

/// A resource, and the place of the extension in its objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version that the path is for.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The resource in plural, such as `machines`.
    #[schemars(length(min = 1, max = 63))]
    pub resource: String,
    /// The kind, if the plural is not the usual one. Etch uses it for files, which do not name a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// The path of the extension, such as `.spec.template.spec.providerSpec.value`. `[*]` goes through every
    /// item of a list or value of a map; put a name with a dot in double quotes.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// What errors show in place of the path; the path itself if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub reported_as: Option<String>,
}

impl Target {
    /// The field whose text is no name of its kind, and why. API servers take `*` and subresources in the
    /// rules of webhooks, and Etch compares names.
    pub fn misnamed(&self) -> Option<(&'static str, &'static str)> {
        let is_of = |text: &str, more: &[char]| {
            text.chars().all(|character| {
                character.is_ascii_lowercase() || character.is_ascii_digit() || more.contains(&character)
            })
        };
        let resource = "no resource has this name: write its plural, in lower case and without a subresource";
        [
            ("resource", resource, is_of(&self.resource, &['-'])),
            (
                "version",
                "no version has this name: write one target for each version",
                is_of(&self.version, &['-']),
            ),
            ("group", "no group has this name", is_of(&self.group, &['-', '.'])),
        ]
        .into_iter()
        .find_map(|(field, why, is_name)| (!is_name).then_some((field, why)))
    }
}

/// A named value from the cluster. The value is `constant`, or what `path` or `expression` read from
/// `object`, or `fallback` if that gives nothing. If a fact has no value, Etch does not apply the schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// The name: expressions use `facts.NAME`.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z][a-zA-Z0-9]*$"))]
    pub name: String,
    /// A constant value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub constant: Option<Value>,
    /// The object that contains the value. The operator needs permission to read this one object, and watches
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<FactObject>,
    /// The path of the value in that object, such as `.status.infrastructureName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub path: Option<String>,
    /// CEL over `object`, instead of a path. An optional without a value counts as no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10_000))]
    pub expression: Option<String>,
    /// The value if the object gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub fallback: Option<Value>,
}

/// One object in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactObject {
    /// The API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// The resource in plural, such as `infrastructures`.
    #[schemars(length(min = 1, max = 63))]
    pub resource: String,
    /// The namespace; not set for cluster-scoped resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The schema of an extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionSchema {
    /// A structural schema, as in a CRD. A null in the extension counts as absent unless its field is
    /// nullable; a null list item counts as the empty value of its type. Typed clients read it the same way.
    #[serde(rename = "openAPIV3Schema")]
    #[schemars(schema_with = "any_object")]
    pub open_api_v3_schema: Value,
}

/// What Etch does with fields that a schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnknownFields {
    /// Nothing.
    #[default]
    Keep,
    /// Warn about each.
    Warn,
    /// Report each as an error.
    Deny,
    /// Remove them when Etch sets defaults.
    Prune,
}

/// The answer to an object without the extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Required {
    /// The field of the error; that of the extension if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The message of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Create an object.
    #[default]
    Create,
    /// Change an object.
    Update,
}

/// What an expression applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// Each extension of an object: it is `self`.
    #[default]
    Extension,
    /// The object that holds extensions, once, and even if it holds none.
    Object,
}

/// A computed default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct DefaultValue {
    /// The path to set: below the extension, or below the object with the scope `Object`; `.` is the whole.
    /// Etch creates missing objects on the path, but no list items: `[*]` goes through existing items, and is
    /// `item` in expressions.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// The value: CEL over `self`, `item`, `index`, `object`, `oldObject` and `facts`. Null, and an optional
    /// without a value, set nothing.
    #[schemars(length(min = 1, max = 10_000))]
    pub value: String,
    /// When Etch sets it: CEL over the same variables. Always, if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub when: Option<String>,
    /// Which values the default may fill in. `Absent` (the default): where there is none, or null. `Empty`:
    /// also `""`, `0`, `false`, `[]`, and objects with only such values. `Merge`: the default is an object,
    /// and each of its fields fills in one that is absent or empty.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// What the default applies to: the `Extension` (the default) or the `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Apply it only to these of the targets' resources, in plural. To all, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub resources: Vec<String>,
}

/// Which values a default may fill in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Missing {
    /// If there is no value, or null.
    #[default]
    Absent,
    /// Also if it is `""`, `0`, `false`, `[]`, or an object with only such values. Etch does not set an empty
    /// default.
    Empty,
    /// The value is an object, and Etch sets each of its fields that is absent or empty.
    Merge,
}

/// A rule, and the answer if it fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct Rule {
    /// CEL over `self`, `oldSelf`, `object`, `oldObject`, `facts`, and with `forEach` `item` and `index`. A
    /// rule that names `oldSelf` or `oldObject` is about a change, and does not apply if there is no old
    /// value.
    #[schemars(length(min = 1, max = 10_000))]
    pub rule: String,
    /// The message of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
    /// CEL for the message of the error, over the same variables as the rule. If it fails, Etch uses
    /// `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub message_expression: Option<String>,
    /// The field of the error. With a leading dot it is below the extension, or the object, as errors show
    /// it; otherwise Etch shows it as written. Each `[*]` becomes an index of `forEach`, in their order. It
    /// need not exist in any schema. The default is the path that the rule is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The type of the error, as API servers name them: `Required`, `Invalid` (the default), `Forbidden`,
    /// `NotSupported`, `TooMany` or `Duplicate`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultType>,
    /// Whether it is an error (`Deny`, the default) or a warning (`Warn`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The operations that the rule applies to; all, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub operations: Vec<Operation>,
    /// Runs the rule for every value at a path with `[*]`, which is `item`; the innermost index or key is
    /// `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub for_each: Option<String>,
    /// Of the rules of a group, Etch reports only the first that fails, in their order, and does not run the
    /// rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub group: Option<String>,
    /// What the rule applies to: the `Extension` (the default) or the `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Apply it only to these of the targets' resources, in plural. To all, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub resources: Vec<String>,
}

/// The type of an error, as API servers name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FaultType {
    /// A value is missing.
    Required,
    /// A value is malformed or out of range.
    #[default]
    Invalid,
    /// A value must not be set, or not be changed.
    Forbidden,
    /// A value is not one of a list.
    NotSupported,
    /// A list has too many items.
    TooMany,
    /// A value is duplicated.
    Duplicate,
}

/// The result of a rule that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Severity {
    /// An error.
    #[default]
    Deny,
    /// A warning.
    Warn,
}

/// An object that should exist, by a name in the extension. Etch checks only whether it exists, and never
/// reads its content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct Reference {
    /// The path of the name in the extension; may contain `[*]`. Etch does not look up absent and empty
    /// names.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// The API group of the object; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version of the object; `v1` if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub version: Option<String>,
    /// The resource in plural, such as `secrets`.
    #[schemars(length(min = 1, max = 63))]
    pub resource: String,
    /// CEL for the namespace, over `self`, `object` and `facts`; that of the object itself if not set. Etch
    /// does not look up anything in an empty one, and reports the reference if the expression cannot be
    /// evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub namespace: Option<String>,
    /// The field of the message, as in rules; the path if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
    /// Whether it is an error (`Deny`) or a warning (`Warn`, the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// Whether Etch judges updates by what they change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ratcheting {
    /// Judge updates by what they change.
    #[default]
    Enabled,
    /// Judge each update as if the whole object were new.
    Disabled,
}

/// What Etch does with defaults that existing objects lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnExisting {
    /// Nothing.
    #[default]
    LeaveAlone,
    /// Store them.
    Persist,
}

/// What a violation causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// The request passes with a warning.
    #[default]
    Warn,
    /// The request is refused.
    Deny,
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

pub(crate) fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
