//! Finding the type, and the field in it, that a user names as for kubectl: `deployments`,
//! `Deployment.v1.apps`, `svc.spec.ports`. Short names are unknown here: only a cluster has them.

use std::cmp::Reverse;

use super::{Document, TypeName};
use etch_admission::plural;
use etch_core::words::first;

/// How many types are named that may have been meant.
const SHOWN: usize = 8;

/// A type, and a place in it.
#[derive(Clone, Debug)]
pub struct Named<'d> {
    /// The document that describes it.
    pub document: &'d Document,
    /// The type.
    pub of: &'d TypeName,
    /// The fields that lead to the place, from the top; none for the whole type.
    pub place: Vec<String>,
}

/// Why no type is meant by a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// No document has a type of this name.
    #[error("no document contains a type {name:?}; they contain {}", listed(known))]
    Unknown {
        /// The text.
        name: String,
        /// The types that there are.
        known: Vec<String>,
    },
    /// Types of several groups are called so.
    #[error("{name:?} may be any of {}; say which", candidates.join(", "))]
    Ambiguous {
        /// The text.
        name: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// The type has no such field.
    #[error("{of} has no field .{field}")]
    NoField {
        /// The type.
        of: TypeName,
        /// The field, with those above it.
        field: String,
    },
}

fn listed(known: &[String]) -> String {
    first(known, known.len() as u64, SHOWN)
}

/// Finds a type by its kind, in the singular or plural, with `.version`, `.group` or `.version.group` behind
/// it where that is needed, and fields behind that. Of several versions the most stable and newest counts, as
/// for kubectl.
///
/// # Errors
/// See [`NameError`].
pub fn named<'d>(typed: &str, documents: &'d [Document]) -> Result<Named<'d>, NameError> {
    let (word, rest) = typed.split_once('.').unwrap_or((typed, ""));
    let all = || documents.iter().flat_map(|document| document.kinds().map(move |of| (document, of)));
    // The longest qualifier that fits counts: `.apps.spec` begins with a group, and `.spec` with none. Of two
    // that are equally long the whole one counts: `.v1` is all that the core group has.
    let mut found: Vec<_> = all()
        .filter(|(_, of)| is_called(&of.kind, word))
        .filter_map(|(document, of)| {
            let fit = qualifiers(of).into_iter().enumerate();
            let fit = fit.filter_map(|(index, text)| Some(((text.len(), index == 0), behind(rest, &text)?)));
            fit.max_by_key(|(fit, _)| *fit).map(|(fit, fields)| (fit, document, of, fields))
        })
        .collect();
    let best = found.iter().map(|(fit, ..)| *fit).max();
    found.retain(|(fit, ..)| Some(*fit) == best);
    found.sort_by_key(|(_, _, of, _)| (of.group(), Reverse(rank(of.version()))));
    let Some(&(_, document, of, fields)) = found.first() else {
        let mut known: Vec<String> = all().map(|(_, of)| of.to_string()).collect();
        known.sort();
        known.dedup();
        return Err(NameError::Unknown { name: typed.to_owned(), known });
    };
    if found.iter().any(|(_, _, other, _)| other.group() != of.group()) {
        let mut candidates: Vec<String> = found.iter().map(|(_, _, of, _)| qualified(of)).collect();
        candidates.dedup();
        return Err(NameError::Ambiguous { name: typed.to_owned(), candidates });
    }
    let place: Vec<String> = fields.split('.').filter(|field| !field.is_empty()).map(str::to_owned).collect();
    if let Some(depth) = (1..=place.len()).find(|depth| !document.has_fields(of, &place[..*depth])) {
        return Err(NameError::NoField { of: of.clone(), field: place[..depth].join(".") });
    }
    Ok(Named { document, of, place })
}

/// The whole name of a type: `Deployment.v1.apps`, `Service.v1`.
fn qualified(of: &TypeName) -> String {
    format!("{}.{}", of.kind, qualifiers(of)[0])
}

/// What may stand behind a kind, the whole first.
fn qualifiers(of: &TypeName) -> Vec<String> {
    let (group, version) = (of.group(), of.version());
    match group {
        "" => vec![version.to_owned(), String::new()],
        group => vec![format!("{version}.{group}"), group.to_owned(), version.to_owned(), String::new()],
    }
}

/// What is behind a qualifier.
fn behind<'t>(text: &'t str, qualifier: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(qualifier)?;
    if qualifier.is_empty() || rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// Whether a word is a kind's name, or its usual plural.
fn is_called(kind: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    word == kind.to_lowercase() || word == plural(kind)
}

/// How a version ranks: stable before beta before alpha, then by number.
///
/// Source: apimachinery `pkg/version/helpers.go`, `CompareKubeAwareVersionStrings`.
fn rank(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let (major, stage) = match rest.find(|each: char| !each.is_ascii_digit()) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    let number = |text: &str| text.parse().ok();
    match (number(major), stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        (Some(major), ..) if stage.is_empty() => (3, major, 0),
        (Some(major), Some(beta), _) => (2, major, number(beta).unwrap_or_default()),
        (Some(major), _, Some(alpha)) => (1, major, number(alpha).unwrap_or_default()),
        _ => (0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents() -> Vec<Document> {
        let one = |group: &str, version: &str, kind: &str| {
            let ports = json!({"type": "array", "items": {"properties": {"name": {"type": "string"}}}});
            let schema = json!({
                "type": "object",
                "properties": {
                    "metadata": {}, "spec": {"properties": {"ports": ports}}, "v1": {"type": "string"},
                },
                "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}],
            });
            Document::read(json!({"openapi": "3.0.0", "components": {"schemas": {kind: schema}}}).into())
                .expect("a document")
        };
        vec![
            one("", "v1", "Event"),
            one("events.k8s.io", "v1", "Event"),
            one("", "v1", "Service"),
            one("autoscaling", "v1", "Scaler"),
            one("autoscaling", "v2", "Scaler"),
            one("autoscaling", "v3beta1", "Scaler"),
            one("policy", "v1", "Policy"),
            one("gateway.networking.k8s.io", "v1", "Gateway"),
        ]
    }

    #[test]
    fn types_and_fields_are_named_as_for_kubectl() {
        let documents = documents();
        for (typed, expected) in [
            ("service", "Service of v1 "),
            ("Services.v1", "Service of v1 "),
            ("services.spec.ports.name", "Service of v1 spec.ports.name"),
            ("service.v1.v1", "Service of v1 v1"),
            ("scalers", "Scaler of autoscaling/v2 "),
            ("scaler.v1", "Scaler of autoscaling/v1 "),
            ("scaler.v3beta1.autoscaling.spec", "Scaler of autoscaling/v3beta1 spec"),
            ("policies", "Policy of policy/v1 "),
            ("gateways", "Gateway of gateway.networking.k8s.io/v1 "),
            ("event.events.k8s.io", "Event of events.k8s.io/v1 "),
            ("Event.v1", "Event of v1 "),
            ("event.v1.spec", "Event of v1 spec"),
            ("Event.v1.events.k8s.io", "Event of events.k8s.io/v1 "),
        ] {
            let named = named(typed, &documents).expect(typed);
            assert_eq!(format!("{} {}", named.of, named.place.join(".")), expected, "{typed}");
        }
        for (typed, expected) in [
            (
                "secret",
                "no document contains a type \"secret\"; they contain Event of events.k8s.io/v1, Event of \
                 v1,",
            ),
            ("event", "\"event\" may be any of Event.v1, Event.v1.events.k8s.io; say which"),
            ("service.spec.port", "Service of v1 has no field .spec.port"),
            ("service.apps", "Service of v1 has no field .apps"),
        ] {
            let error = named(typed, &documents).expect_err(typed).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
