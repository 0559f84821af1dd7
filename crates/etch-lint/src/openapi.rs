//! The rules for types other than CRDs: what an API server publishes of built-in and aggregated ones. They do
//! not report what generators write of their own accord: the zero value as the default of every field that is
//! not a pointer in Go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rule::{Finding, Report, Rule};
use super::subject::Subject;
use super::{
    breaks_parent_rule, hidden_by_null, immutable, invalid, list_map_key, map_value, null_default, null_only,
    nullable, optional_list_map_key, parent_disagrees, required, required_object, unreachable,
    version_or_image,
};
use crate::published::{Document, TypeName, child, short};
use kube_structural_schema::json::{Json, is_zero};
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::DEEPEST;

/// The rules about published types, in the order of their codes. Left out is what only a CRD has: a
/// structural schema, a storage version, pruned defaults, and a server that refuses it.
pub const OPENAPI_RULES: [&Rule; 15] = [
    &invalid::RULE,
    &map_value::RULE,
    &unreachable::RULE,
    &parent_disagrees::RULE,
    &required::RULE,
    &list_map_key::RULE,
    &nullable::RULE,
    &version_or_image::RULE,
    &breaks_parent_rule::RULE,
    &immutable::RULE,
    &null_default::RULE,
    &optional_list_map_key::RULE,
    &null_only::RULE,
    &hidden_by_null::RULE,
    &required_object::RULE,
];

/// What is found about a type.
#[derive(Debug)]
pub struct TypeFinding {
    /// The first of the types that it is about.
    pub of: TypeName,
    /// What is found, with the version of that type and the place in it.
    pub finding: Finding,
}

/// Applies the rules to all types of a document. What is wrong with a definition that many types share is
/// reported once, at the first of them, and counted.
///
/// # Errors
/// Beside the findings: the types that cannot be checked, and why.
pub fn lint_openapi(document: &Document) -> (Vec<TypeFinding>, Vec<String>) {
    let mut found: BTreeMap<(&'static str, String, Path), (TypeFinding, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for of in document.kinds() {
        let findings = match schema(document, of) {
            Ok(schema) => check(of, schema),
            Err(why) => {
                failures.push(why);
                continue;
            }
        };
        for finding in findings {
            let (definition, within) = document.declares(of, &finding.path).unwrap_or_default();
            let key = (finding.rule.code, definition.to_owned(), within);
            let finding = TypeFinding { of: of.clone(), finding };
            found.entry(key).and_modify(|(_, types)| *types += 1).or_insert((finding, 1));
        }
    }
    let mut all: Vec<TypeFinding> = found
        .into_iter()
        .map(|((_, definition, _), (mut found, types))| {
            if types > 1 {
                let shared = format!(" ({}, in {types} kinds)", short(&definition));
                found.finding.message.push_str(&shared);
            }
            found
        })
        .collect();
    all.sort_by_cached_key(|TypeFinding { of, finding }| {
        (of.clone(), finding.path.to_string(), finding.rule.code)
    });
    (all, failures)
}

fn schema(document: &Document, of: &TypeName) -> Result<Json, String> {
    let schema = document.structural(of).map_err(|error| format!("{of}: {error}"))?;
    Ok(schema.unwrap_or_default())
}

fn check(of: &TypeName, schema: Json) -> Vec<Finding> {
    let mut version = json!({"name": of.version(), "served": true, "storage": true, "schema": {}});
    version["schema"]["openAPIV3Schema"] = schema.into_inner();
    let crd = Json::from(json!({"spec": {"versions": [version]}}));
    let Ok(subject) = Subject::read(&crd) else { return Vec::new() };
    let Some(read) = subject.versions.first().filter(|version| version.schema.depth() <= DEEPEST) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for rule in OPENAPI_RULES {
        if let Some(check) = rule.check {
            check(&subject, &mut Report { rule, findings: &mut findings });
        }
    }
    let written = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    findings.retain(|finding| !is_generated(written, &finding.path));
    for finding in &mut findings {
        finding.version.clone_from(&read.name);
    }
    findings
}

/// Whether the default of a place is one that generators write for every field that is not a pointer.
fn is_generated(schema: &Value, path: &Path) -> bool {
    let at = path.steps().iter().try_fold(schema, child);
    at.and_then(|schema| schema.get("default")).is_some_and(|default| !default.is_null() && is_zero(default))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(root: Value, port: Value) -> Vec<String> {
        let kind = |name: &str| {
            let mut root = root.clone();
            root["x-kubernetes-group-version-kind"] = json!([{"group": "g", "version": "v1", "kind": name}]);
            root
        };
        let schemas = json!({"a.One": kind("One"), "a.Two": kind("Two"), "a.Port": port});
        let document = json!({"openapi": "3.0.0", "components": {"schemas": schemas}});
        let document = Document::read(document.into()).expect("a document");
        let (findings, failures) = lint_openapi(&document);
        assert_eq!(failures, <[&str; 0]>::default());
        let line = |TypeFinding { of, finding }: TypeFinding| {
            let Finding { rule, version, path, message, .. } = finding;
            format!("{} {} {version} {path}: {message}", rule.code, of.group_kind())
        };
        findings.into_iter().map(line).collect()
    }

    fn root() -> Value {
        json!({"type": "object", "properties": {"metadata": {},
            "spec": {"type": "object", "default": {}, "properties": {
            "ports": {
                "type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/a.Port"}], "default": {}},
            },
        }}}})
    }

    #[test]
    fn what_types_share_is_found_once() {
        let port = json!({"type": "object", "properties": {
            "port": {"type": "integer", "default": "http"}, "image": {
                "type": "string", "default": "nginx:1.2",
            },
        }});
        assert_eq!(
            found(root(), port),
            [
                "ETCH012 One.g v1 .spec.ports[].image: the default is an image with a tag (Port, in 2 kinds)",
                "ETCH002 One.g v1 .spec.ports[].port: the default is invalid: must be of type integer: \
                 \"string\" (Port, in 2 kinds)",
            ]
        );
    }

    #[test]
    fn zero_values_that_generators_write_are_no_findings() {
        let port = json!({"type": "object", "required": ["name", "inner"], "properties": {
            "name": {"type": "string", "default": "", "enum": ["a", "b"]},
            "inner": {
                "type": "object", "default": {}, "required": ["x"], "properties": {"x": {"type": "string"}},
            },
        }});
        assert_eq!(found(root(), port), <[&str; 0]>::default());
    }
}
