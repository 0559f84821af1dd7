//! What schemas mean for existing objects, before any user is refused because of them. Nothing is looked up,
//! and no value of an object is reported.

use serde_json::Value;

use super::compile::Compiled;
use super::request::{Named, Request};
use super::review::invoke;
use super::run::Run;
use super::spec::{Operation, Ratcheting};
use etch_core::crd::Resource;
use etch_core::field::written_place_in;
use etch_core::patch::{Change, patch};
use kube_structural_schema::json::Json;

/// What a schema means for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    /// It would be refused, were it created now and the schema enforced.
    pub is_denied: bool,
    /// It would get a default.
    pub gains_defaults: bool,
}

/// The defaults that an existing object lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lacking {
    /// What setting them changes in it.
    pub changes: Vec<Change>,
    /// The rule that it would break with them and does not break without them, as an update that sets them:
    /// its place in the declaration, and the place in the object, with `*` for the keys of maps.
    pub breaks: Option<String>,
}

impl Compiled {
    /// The defaults that an object lacks, on whatever operation they are set. What the schema would prune
    /// stays.
    pub fn lacking(&self, resource: &Resource, object: &Value, facts: &Value) -> Lacking {
        let request = request(resource, object, facts);
        let Some(with) = self.with_defaults(&request).object else { return Lacking::default() };
        let mut changes = patch(object, &with);
        changes.retain(|change| !matches!(change, Change::Remove { .. }));
        let update =
            Request { operation: Operation::Update, object: &with, old_object: Some(object), ..request };
        let found = match changes.is_empty() {
            true => Vec::new(),
            // What it breaks without the defaults does not count, whatever a user's update is refused for.
            false => self.found_with(Ratcheting::Enabled, &update),
        };
        let broken = found.iter().find(|found| found.denies());
        let breaks = broken.map(|broken| {
            let place = written_place_in(&broken.error.field, &with).without_keys();
            format!("{} at {place}", broken.place())
        });
        Lacking { changes, breaks }
    }
}

/// The creation of an object.
pub(super) fn request<'r>(resource: &'r Resource, object: &'r Value, facts: &'r Value) -> Request<'r> {
    let Resource { group, version, plural } = resource;
    Request {
        named: Named::Resource { group, version, resource: plural },
        operation: Operation::Create,
        object,
        old_object: None,
        facts,
        exists: &|_| None,
    }
}

/// Judges an object as if it were created now, by all schemas that are for its resource, each with its facts:
/// first all defaults, in this order, then all verdicts, like the API server. `enforcement` and `defaultOn`
/// do not matter, and no reference is looked up: one that leads nowhere denies nothing here.
///
/// `None` for a schema that is not for this object.
pub fn existing(
    schemas: &[(&Compiled, &Value)],
    resource: &Resource,
    object: &Value,
) -> Vec<Option<Existing>> {
    let request = request(resource, object, &Value::Null);
    let mut now = Json::from(object.clone());
    let mut found: Vec<Option<Existing>> = vec![None; schemas.len()];
    invoke(schemas.len(), |index| {
        let (schema, facts) = schemas[index];
        let before = Request { object: &now, facts, ..request };
        let mut run = Run::new(schema);
        if schema.subject(&before, &mut run).is_none() && !run.is_spent() {
            return false;
        }
        let found = found[index].get_or_insert_default();
        let Some(set) = schema.with_defaults(&before).object else { return false };
        let is_gain = |change: &Change| !matches!(change, Change::Remove { .. });
        found.gains_defaults |= patch(&now, &set).iter().any(is_gain);
        now = set;
        true
    });
    for ((schema, facts), found) in schemas.iter().zip(&mut found) {
        if let Some(found) = found {
            let judged = schema.found(&Request { object: &now, facts, ..request });
            found.is_denied = judged.iter().any(super::judge::Found::denies);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::review::review;
    use super::*;

    fn compiled(more: Value) -> Compiled {
        let mut declared = json!({
            "targets": [{
                "group": "example.com", "version": "v1", "resource": "things", "path": ".spec.ext",
            }],
        });
        declared.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        let declared = serde_json::from_value(declared).expect("a declaration");
        Compiled::new(&declared).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn resource() -> Resource {
        Resource { group: "example.com".into(), version: "v1".into(), plural: "things".into() }
    }

    fn judged(schemas: &[&Compiled], ext: Value) -> Vec<Option<(bool, bool)>> {
        let facts = json!({});
        let schemas: Vec<_> = schemas.iter().map(|schema| (*schema, &facts)).collect();
        let found = existing(&schemas, &resource(), &json!({ "spec": { "ext": ext } }));
        found.into_iter().map(|found| found.map(|found| (found.is_denied, found.gains_defaults))).collect()
    }

    fn typed() -> Value {
        json!({ "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "integer", "minimum": 1, "default": 2 }, "name": { "type": "string" },
        } } })
    }

    #[test]
    fn an_object_is_judged_as_if_created_whatever_is_enforced() {
        for more in [json!({}), json!({ "enforcement": "Deny" }), json!({ "defaultOn": ["UPDATE"] })] {
            let mut declared = more;
            declared["schema"] = typed();
            let schema = compiled(declared);
            assert_eq!(judged(&[&schema], json!({})), [Some((false, true))]);
            assert_eq!(judged(&[&schema], json!({ "size": 0 })), [Some((true, false))]);
            assert_eq!(judged(&[&schema], json!({ "size": 1, "more": 1 })), [Some((false, false))]);
            assert_eq!(judged(&[&schema], json!({ "name": 1 })), [Some((true, true))]);
        }
    }

    #[test]
    fn what_is_pruned_is_no_default_and_a_reference_is_not_looked_up() {
        let schema = compiled(json!({
            "schema": typed(), "unknownFields": "Prune",
            "references": [{ "path": ".name", "resource": "secrets", "severity": "Deny" }],
        }));
        assert_eq!(
            judged(&[&schema], json!({ "size": 1, "more": 1, "name": "gone" })),
            [Some((false, false))]
        );
    }

    #[test]
    fn warnings_and_rules_about_a_change_deny_nothing() {
        let schema = compiled(json!({ "rules": [
            { "rule": "false", "severity": "Warn" }, { "rule": "self == oldSelf" },
            { "rule": "false", "operations": ["UPDATE"] },
        ] }));
        assert_eq!(judged(&[&schema], json!({})), [Some((false, false))]);
    }

    #[test]
    fn defaults_of_another_schema_count_before_the_verdict() {
        let sets = compiled(json!({ "schema": typed() }));
        let asks = compiled(json!({ "rules": [{ "rule": "has(self.size)" }] }));
        let elsewhere = compiled(json!({ "when": "has(extension.kind)" }));
        let expected = [Some((false, false)), Some((false, true)), None];
        assert_eq!(judged(&[&asks, &sets, &elsewhere], json!({})), expected);
        assert_eq!(judged(&[&asks], json!({})), [Some((true, false))]);
    }

    #[test]
    fn schemas_before_the_last_one_that_sets_a_default_are_asked_once_more() {
        let default = |path: &str, when: &str| json!({ "path": path, "when": when, "value": "'set'" });
        let first = compiled(json!({ "defaults": [default(".x", "has(self.y)")] }));
        let second = compiled(json!({
            "defaults": [default(".y", "true")], "rules": [{ "rule": "has(self.x)" }],
        }));
        assert_eq!(judged(&[&first, &second], json!({})), [Some((false, true)), Some((false, true))]);
        // That the second round sets something asks for no third.
        let needs_x = compiled(json!({ "defaults": [default(".z", "has(self.x)")] }));
        let asks = compiled(json!({ "rules": [{ "rule": "!has(self.z)" }] }));
        let expected = [Some((false, false)), Some((false, true)), Some((false, true)), Some((false, false))];
        assert_eq!(judged(&[&needs_x, &first, &second, &asks], json!({})), expected);
        let facts = json!({});
        let object = json!({ "spec": { "ext": {} } });
        let of = resource();
        let review = review(&[(&first, &facts), (&second, &facts)], &request(&of, &object, &facts));
        let set = review.object.expect("it is allowed");
        assert_eq!(set["spec"]["ext"], json!({ "x": "set", "y": "set" }));
    }

    #[test]
    fn what_is_lacking_is_what_is_set_and_nothing_that_is_pruned() {
        let schema =
            compiled(json!({ "schema": typed(), "unknownFields": "Prune", "defaultOn": ["UPDATE"] }));
        let lacking =
            |ext: Value| schema.lacking(&resource(), &json!({ "spec": { "ext": ext } }), &json!({}));
        let path = "/spec/ext/size".to_owned();
        let changes = vec![Change::Add { path, value: json!(2).into() }];
        assert_eq!(lacking(json!({ "more": 1 })), Lacking { changes, breaks: None });
        assert!(lacking(json!({ "size": 0, "more": 1 })).changes.is_empty());
    }

    #[test]
    fn a_default_that_breaks_a_rule_is_told_from_a_fault_that_was_there() {
        for ratcheting in ["Enabled", "Disabled"] {
            let breaks = |rule: &str| {
                let rules = json!([{ "rule": rule }]);
                let schema = compiled(json!({ "schema": typed(), "rules": rules, "ratcheting": ratcheting }));
                schema.lacking(&resource(), &json!({ "spec": { "ext": {} } }), &json!({})).breaks
            };
            for rule in ["!has(self.size)", "has(oldSelf.size)"] {
                assert_eq!(breaks(rule).as_deref(), Some("spec.rules[0] at .spec.ext"), "{rule}");
            }
            assert_eq!((breaks("has(self.name)"), breaks("has(self.size)")), (None, None), "{ratcheting}");
        }
    }

    #[test]
    fn another_resource_or_version_is_nobodys() {
        let schema = compiled(json!({}));
        let facts = json!({});
        let other = Resource { version: "v2".into(), ..resource() };
        assert_eq!(existing(&[(&schema, &facts)], &other, &json!({ "spec": { "ext": {} } })), [None]);
    }
}
