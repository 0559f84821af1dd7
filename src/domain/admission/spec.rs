//! What an `EmbeddedSchema` declares, as its author writes it.
//! It must not judge: whether a declaration can be served is for `compile` to find.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::Webhooks;

/// Where an extension stands, what it needs and what it must be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Declaration {
    /// Where the extension stands: one entry for each resource that holds it.
    #[schemars(length(min = 1, max = 50))]
    pub targets: Vec<Target>,
    /// What expressions may know of the cluster, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub facts: Vec<Fact>,
    /// When the schema applies: CEL over `object`, `oldObject` (null on CREATE), `facts`, and, where there is an extension,
    /// `extension` (its `apiVersion`, `kind` and all else, as it is). Always, if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub when: Option<String>,
    /// What the extension is: types, restrictions, defaults and rules in the dialect of a CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<ExtensionSchema>,
    /// What is done about fields of the extension that the schema does not know: `Keep` (the default), `Warn`, `Deny` or
    /// `Prune`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_fields: Option<UnknownFields>,
    /// Refuse objects that lack the extension. Without this they pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Required>,
    /// The operations on which defaults are set: `[CREATE]` if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub default_on: Vec<Operation>,
    /// Defaults that a schema cannot state, in the order in which they are set; after those of the schema. Each sees what the
    /// ones before it have set. None changes a value that is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub defaults: Vec<DefaultValue>,
    /// Rules that a schema cannot state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub rules: Vec<Rule>,
    /// Objects that should exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub references: Vec<Reference>,
    /// Whether updates are judged by what they change: `Enabled` (the default) or `Disabled`. Where enabled, an update that
    /// leaves the extension as it is, that only removes finalizers, or that is about an object which is being deleted passes,
    /// and a fault that the old object had already is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratcheting: Option<Ratcheting>,
    /// What a fault does: `Warn` (the default) or `Deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// What is done about defaults that objects lack which are there already: nothing (`LeaveAlone`, the default), or they are
    /// stored (`Persist`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<OnExisting>,
    /// How the API server asks about the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
}

/// A resource, and where in its objects the extension stands.
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
    /// The kind, where the plural is not the usual one. It is used for files, which have no resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// Where the extension stands, such as `.spec.template.spec.providerSpec.value`. `[*]` goes through every item of a list or
    /// value of a map; a name with a dot stands in double quotes.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// What errors write in place of the path; the path itself if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub reported_as: Option<String>,
}

/// A named value from the cluster. The value is `constant`, or what `path` or `expression` take from `object`; `fallback`
/// where that gives nothing. A fact without any value prevents the schema from being applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// The name: expressions say `facts.NAME`.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z][a-zA-Z0-9]*$"))]
    pub name: String,
    /// A value that is always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub constant: Option<Value>,
    /// The object that the value is taken from. The operator may read this one object and watches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<FactObject>,
    /// Where in that object the value stands, such as `.status.infrastructureName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub path: Option<String>,
    /// CEL over `object`, in place of a path. An optional without a value is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10_000))]
    pub expression: Option<String>,
    /// The value where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub fallback: Option<Value>,
}

/// One object of the cluster.
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
    /// The namespace; none for resources without.
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
    /// A structural schema, as in a CRD. A null in the extension counts as absent unless its field is nullable, and as an item of
    /// a list as the empty value of its type, which is how typed clients read it.
    #[serde(rename = "openAPIV3Schema")]
    #[schemars(schema_with = "any_object")]
    pub open_api_v3_schema: Value,
}

/// What is done about fields that a schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnknownFields {
    /// Nothing.
    #[default]
    Keep,
    /// Each gets a warning.
    Warn,
    /// Each is an error.
    Deny,
    /// They are removed where defaults are set.
    Prune,
}

/// What an object without the extension is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Required {
    /// The field of the error; that of the extension if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The text of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It creates an object.
    #[default]
    Create,
    /// It changes one.
    Update,
}

/// What an expression is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// Each extension of an object: it is `self`.
    #[default]
    Extension,
    /// The object that holds extensions, once, and even if it holds none.
    Object,
}

/// A default that is computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultValue {
    /// Where the value is set: below the extension, or below the object for the scope `Object`; `.` is the whole. What is missing
    /// on the way is made, but for items of lists: `[*]` goes through those that are there, and is `item` in expressions.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// The value: CEL over `self`, `item`, `index`, `object`, `oldObject` and `facts`. Null, and an optional without a value,
    /// set nothing.
    #[schemars(length(min = 1, max = 10_000))]
    pub value: String,
    /// When it is set: CEL over the same. Always, if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub when: Option<String>,
    /// Which values count as missing: `Absent` ones (the default), `Empty` ones, or those of each field, with `Merge`.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// What it is about: the `Extension` (the default) or the `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Only for these of the targets' resources, in plural. For all, if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub resources: Vec<String>,
}

/// Which values a default may fill in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Missing {
    /// Where there is no value, or null.
    #[default]
    Absent,
    /// Also where it is `""`, `0`, `false`, `[]`, or an object with nothing but such values. An empty default is not set.
    Empty,
    /// The value is an object, and each of its fields is set where the field is absent or empty.
    Merge,
}

/// A rule, and what is answered where it does not hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// CEL over `self`, `oldSelf`, `object`, `oldObject`, `facts`, and with `forEach` `item` and `index`. A rule that names
    /// `oldSelf` or `oldObject` is about a change, and does not apply where there is no old value.
    #[schemars(length(min = 1, max = 10_000))]
    pub rule: String,
    /// The text of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
    /// CEL for the text of the error, over what the rule may name. `message` is used where it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub message_expression: Option<String>,
    /// The field of the error. With a leading dot it is below the extension, or the object, as errors write it; otherwise it is
    /// written as it is. Each `[*]` becomes an index of `forEach`, in their order. It need not exist in any schema. The place that
    /// the rule is about, if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The type of the error; `Invalid` if this is not set.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultType>,
    /// Whether it is an error (`Deny`, the default) or a warning (`Warn`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The operations that it is for; all, if this is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub operations: Vec<Operation>,
    /// Runs the rule for every value at a path with `[*]`, which is `item`; the innermost index or key is `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub for_each: Option<String>,
    /// Of the rules of a group the first that does not hold speaks, in their order, and the rest are not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub group: Option<String>,
    /// What it is about: the `Extension` (the default) or the `Object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Only for these of the targets' resources, in plural. For all, if this is empty.
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
    /// There are too many.
    TooMany,
    /// A value is there twice.
    Duplicate,
}

/// What comes of a rule that does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Severity {
    /// An error.
    #[default]
    Deny,
    /// A warning.
    Warn,
}

/// An object that should exist, by a name in the extension. Only whether it exists is asked, never what it holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Where the name stands in the extension; may hold `[*]`. Absent and empty names are not looked up.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// The API group of the object; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version of the object; `v1` if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub version: Option<String>,
    /// The resource in plural, such as `secrets`.
    #[schemars(length(min = 1, max = 63))]
    pub resource: String,
    /// CEL for the namespace, over `self`, `object` and `facts`; that of the object itself if this is not set. Nothing is looked
    /// up in an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub namespace: Option<String>,
    /// The field of the answer, as in rules; the path if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub field: Option<String>,
    /// The text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub message: Option<String>,
    /// Whether it is an error (`Deny`) or a warning (`Warn`, the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// Whether updates are judged by what they change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ratcheting {
    /// They are.
    #[default]
    Enabled,
    /// Each is judged as if all of it were new.
    Disabled,
}

/// What is done about defaults that existing objects lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnExisting {
    /// Nothing.
    #[default]
    LeaveAlone,
    /// They are stored.
    Persist,
}

/// What a fault does to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// The request passes, and its author is warned.
    #[default]
    Warn,
    /// The request is refused.
    Deny,
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
