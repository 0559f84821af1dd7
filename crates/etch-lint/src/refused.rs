//! ETCH015: what the API server answers about the CRD as a whole, when it is created or replaces another.
//! The server's answer is the finding, unfiltered.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::refusal::{Part, Refusal, version_at};
use super::rule::{Finding, Rule, Severity};
use kube_crd_validation::crd::{Malformed, Release, validate_create_on, validate_update_on};
use kube_structural_schema::finding::{self, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

pub(super) const RULE: Rule = Rule {
    code: "ETCH015",
    name: "refused",
    severity: Severity::Error,
    summary: "the API server refuses the CRD",
    help: "\
The API server validates a CRD as a whole: names and groups, versions, the schema's keywords and list types,
its structure and defaults, whether validation rules compile and what they may cost, printer columns,
selectable fields, scale paths and conversion. Each finding is one of its errors, with its field, type and
message.

Without --old, the CRD is validated as a new one. With --old, it is validated as an update: violations that
the old CRD has may stay if the server allows it. A CRD of a cluster is validated as an update that changes
nothing.

Field names are the server's: it reports what all versions share once, as spec.validation, spec.subresources,
spec.additionalPrinterColumns and spec.selectableFields.

Kubernetes releases differ slightly. This rule checks all supported ones, or those of --kubernetes; a finding
that does not apply to all of them names those to which it applies.",
    check: None,
};

/// What releases answer about a CRD, or about one that replaces another, each error once.
pub fn refusals(crd: &Json, old: Option<&Json>, releases: &[Release]) -> Vec<Finding> {
    let in_force = old.map(in_force);
    let mut order: Vec<finding::Finding> = Vec::new();
    let mut wording: BTreeMap<(String, Option<Kind>, String), Vec<Release>> = BTreeMap::new();
    for release in releases {
        let found = match in_force.as_deref() {
            Some(old) => validate_update_on(*release, crd, old),
            None => validate_create_on(*release, crd),
        };
        let found = match found {
            Ok(found) => found,
            Err(malformed) => return vec![unreadable(crd, &malformed)],
        };
        for error in found {
            let key = (error.field.clone(), Some(error.kind), error.detail.clone());
            let by = wording.entry(key).or_insert_with(|| {
                order.push(error);
                Vec::new()
            });
            if by.last() != Some(release) {
                by.push(*release);
            }
        }
    }
    let finding = |error: finding::Finding| {
        let by = wording
            .remove(&(error.field.clone(), Some(error.kind), error.detail.clone()))
            .unwrap_or_default();
        let only = if by.len() < releases.len() { by } else { Vec::new() };
        let message = message(&error, &only);
        let finding::Finding { field, kind, detail, .. } = error;
        finding_at(
            crd,
            Refusal { place: place(crd, &field), field, kind: Some(kind), detail, releases: only },
            message,
        )
    };
    order.into_iter().map(finding).collect()
}

/// The CRD that is replaced, as a cluster has it: if a file has no conditions, or an empty list as older
/// controller-gen writes it, its names count as accepted and it as established, so that scope and kind are
/// fixed.
fn in_force(old: &Json) -> Cow<'_, Json> {
    let has_none = |conditions: &Value| conditions.as_array().map_or(conditions.is_null(), Vec::is_empty);
    if !has_none(&old["status"]["conditions"]) || !old.is_object() || !old["spec"].is_object() {
        return Cow::Borrowed(old);
    }
    let mut old = old.clone();
    if !old["status"].is_object() {
        old["status"] = json!({});
    }
    old["status"]["conditions"] = json!([{ "type": "Established", "status": "True" }]);
    Cow::Owned(old)
}

fn unreadable(crd: &Value, Malformed { place: field, expected }: &Malformed) -> Finding {
    let detail = format!("must be {expected}");
    let message = format!("the server cannot decode it: {detail}");
    let place = place(crd, field);
    finding_at(
        crd,
        Refusal { field: field.clone(), kind: None, detail, releases: Vec::new(), place },
        message,
    )
}

/// The error without its place, in one line.
fn message(error: &finding::Finding, only: &[Release]) -> String {
    let plain = finding::Finding { field: String::new(), ..error.clone() };
    let line: Vec<_> = plain.line().lines().map(str::trim).map(str::to_owned).collect();
    let mut text = line.join(" ");
    if !only.is_empty() {
        let releases: Vec<_> = only.iter().map(Release::to_string).collect();
        text = format!("{text} (Kubernetes {})", releases.join(", "));
    }
    text
}

fn finding_at(crd: &Value, refusal: Refusal, message: String) -> Finding {
    let is_of_version = refusal.field.starts_with("spec.versions[");
    let (version_index, version) = version_at(crd, if is_of_version { &refusal.place } else { &[] });
    let path = match refusal.field.split_once("openAPIV3Schema") {
        Some((_, below)) => {
            finding::Finding::new(Kind::Invalid, format!("openAPIV3Schema{below}"), "").default_site()
        }
        None => Path::root(),
    };
    Finding { version_index, refusal: Some(refusal), ..Finding::new(&RULE, version, path, message) }
}

/// Where the document has what the server's error about a field is about. What the server has moved to the
/// top is in every version; the first one's is meant.
fn place(crd: &Value, field: &str) -> Vec<Part> {
    const MOVED: [(&str, &str); 7] = [
        ("spec.validation", "spec.versions[0].schema"),
        ("spec.subresources", "spec.versions[0].subresources"),
        ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
        ("spec.selectableFields", "spec.versions[0].selectableFields"),
        ("spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"),
        ("spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"),
        ("status.storedVersions", "spec.versions"),
    ];
    let moved =
        MOVED.iter().find_map(|(from, to)| field.strip_prefix(from).map(|rest| format!("{to}{rest}")));
    let field = if field == "spec.version" {
        "spec.versions[0].name".to_owned()
    } else {
        moved.unwrap_or(field.to_owned())
    };
    let field = field.replace("].JSONPath", "].jsonPath");
    let (mut at, mut rest, mut parts) = (crd, field.as_str(), Vec::new());
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let bracket = rest.strip_prefix('[');
        let step = match at {
            Value::Array(items) => {
                bracket.and_then(|inner| inner.split_once(']')).and_then(|(index, after)| {
                    let index: usize = index.parse().ok()?;
                    Some((Part::Item(index), items.get(index)?, after))
                })
            }
            // A name may hold points and brackets itself, so the document decides which names there are.
            Value::Object(fields) => {
                let named = fields.iter().filter_map(|(name, value)| {
                    let after = match bracket {
                        Some(inner) => inner.strip_prefix(name.as_str())?.strip_prefix(']')?,
                        None => rest.strip_prefix(name.as_str())?,
                    };
                    let ends = after.is_empty() || after.starts_with(['.', '[']);
                    ends.then_some((Part::Field(name.clone()), value, after))
                });
                named.min_by_key(|(_, _, after)| after.len())
            }
            _ => None,
        };
        let Some((part, below, after)) = step else { break };
        parts.push(part);
        (at, rest) = (below, after);
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd() -> Value {
        json!({"metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a.b[0]": {"type": "array",
                    "items": {"type": "string"}, "uniqueItems": true}}}}}]}})
    }

    #[test]
    fn an_error_has_its_place_in_the_document_whatever_the_server_calls_it() {
        let found = refusals(&crd().into(), None, &Release::ALL);
        let [finding] = &found[..] else { panic!("{found:?}") };
        let refusal = finding.refusal.as_ref().expect("an error of the server");
        assert_eq!(refusal.field, "spec.validation.openAPIV3Schema.properties[a.b[0]].uniqueItems");
        let field = |name: &str| Part::Field(name.to_owned());
        let place = [
            field("spec"),
            field("versions"),
            Part::Item(0),
            field("schema"),
            field("openAPIV3Schema"),
            field("properties"),
            field("a.b[0]"),
            field("uniqueItems"),
        ];
        assert_eq!(refusal.place, place);
        assert!(finding.message.starts_with("Forbidden: uniqueItems cannot"), "{}", finding.message);
        assert_eq!(refusal.releases, []);
    }

    #[test]
    fn an_update_is_held_against_the_crd_before() {
        let old = Json::from(crd());
        assert_eq!(refusals(&old, Some(&old), &Release::ALL).len(), 1);
        let mut new = crd();
        new["spec"]["group"] = json!("example.org");
        let found = refusals(&new.into(), Some(&old), &Release::ALL);
        assert!(found.iter().any(|finding| finding.message.ends_with("field is immutable")), "{found:?}");
    }

    #[test]
    fn a_file_without_conditions_is_of_an_established_crd() {
        for status in [json!(null), json!({}), json!({ "conditions": [], "storedVersions": [] })] {
            let (mut old, mut new) = (crd(), crd());
            old["status"] = status.clone();
            new["spec"]["scope"] = json!("Cluster");
            let found = refusals(&new.into(), Some(&old.into()), &Release::ALL);
            assert!(found.iter().any(|finding| finding.message.ends_with("field is immutable")), "{status}");
        }
    }

    #[test]
    fn an_error_of_some_releases_names_them() {
        let mut crd = crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({"l": {"type": "array",
            "maxItems": 9, "items": {"type": "string", "maxLength": 9},
            "x-kubernetes-validations": [{"rule": "self.distinct() == self"}]}});
        let found = refusals(&crd.into(), None, &Release::ALL);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.message.ends_with("(Kubernetes 1.34)"), "{}", finding.message);
    }

    #[test]
    fn what_cannot_be_decoded_is_an_error_too() {
        let mut crd = crd();
        crd["spec"]["scope"] = json!(1);
        let found = refusals(&crd.into(), None, &Release::ALL);
        assert_eq!(found[0].message, "the server cannot decode it: must be a string");
    }
}
