//! Whether a server publishes the defaults of a CRD's schema, and where it does not, why.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go` (`buildKubeNative`,
//! `addEmbeddedProperties`) (fact C10).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::view::{child, own_defaults};
use super::{Document, OpenApiError, TypeName};
use kube_structural_schema::json::same;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;
use kube_structural_schema::schema::rules::structural_errors;

/// A default that is in the schema or in the document, and not the same in both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpublished {
    /// The place in the schema.
    pub path: Path,
    /// Why.
    pub why: Why,
}

/// Why a default is not published as the schema has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The server publishes nothing of a schema that is not structural.
    NonStructural,
    /// The server puts its own schema in place of `apiVersion`, `kind` and `metadata`: of the object, or of
    /// an embedded resource.
    Replaced,
    /// The document does not describe the type.
    Undescribed,
    /// The document has no default there. It may be that of an older state of the CRD, or of an aggregated
    /// API with the same name.
    Missing,
    /// The document has another default.
    Another,
    /// The document has one where the schema has none.
    Unknown,
}

/// Holds the defaults of a version's `openAPIV3Schema` against the document that is published of it, in the
/// order of their places.
///
/// # Errors
/// The document is broken.
pub fn unpublished(
    schema: &Value,
    of: &TypeName,
    document: Option<&Document>,
) -> Result<Vec<Unpublished>, OpenApiError> {
    let wanted = own_defaults(schema);
    let published = document.map(|document| document.structural(of)).transpose()?.flatten();
    let all = |why: Why| wanted.keys().map(|path| Unpublished { path: path.clone(), why }).collect();
    let Some(published) = published else { return Ok(all(Why::Undescribed)) };
    let found = own_defaults(&published);
    let is_structural = Schema::parse(schema).is_ok_and(|schema| structural_errors(&schema).is_empty());
    if !is_structural {
        return Ok(all(Why::NonStructural));
    }
    let places: BTreeSet<&Path> = wanted.keys().chain(found.keys()).collect();
    let judge = |path: &Path| {
        let is_replaced = is_replaced(schema, path);
        match (wanted.get(path), found.get(path)) {
            (Some(wanted), Some(found)) if same(wanted, found) => None,
            // What is in the server's own schema of metadata is not a default of the CRD.
            (None, Some(_)) if is_replaced => None,
            (Some(_), _) if is_replaced => Some(Why::Replaced),
            (Some(_), Some(_)) => Some(Why::Another),
            (Some(_), None) => Some(Why::Missing),
            (None, _) => Some(Why::Unknown),
        }
    };
    let one = |path: &Path| judge(path).map(|why| Unpublished { path: path.clone(), why });
    Ok(places.into_iter().filter_map(one).collect())
}

/// Whether a place is in the `apiVersion`, `kind` or `metadata` of the object or of an embedded resource.
fn is_replaced(schema: &Value, path: &Path) -> bool {
    let mut at = Some(schema);
    path.steps().iter().enumerate().any(|(depth, step)| {
        let is_whole = depth == 0 || at.is_some_and(|at| at["x-kubernetes-embedded-resource"] == true);
        let is_own =
            matches!(step, Step::Field(name) if ["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        at = at.and_then(|at| child(at, step));
        is_whole && is_own
    })
}

impl Why {
    /// Whether it may be that the document is of an older state of the CRD.
    pub fn may_be_behind(self) -> bool {
        !matches!(self, Self::NonStructural | Self::Replaced)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonStructural => "the schema is not structural, so the server publishes none of it",
            Self::Replaced => "the server publishes its own schema of apiVersion, kind and metadata",
            Self::Undescribed => "the server does not publish the type at this version",
            Self::Missing => {
                "the server publishes no default here: it may not have caught up yet, or an \
                aggregated API has the name"
            }
            Self::Another => "the server publishes another default: it may not have caught up yet",
            Self::Unknown => {
                "the server publishes a default that the schema does not have: it may not have caught up yet"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value, published: &Value) -> Vec<String> {
        let mut published = published.clone();
        published["x-kubernetes-group-version-kind"] = json!([{"group": "g", "version": "v1", "kind": "A"}]);
        let meta = json!({"type": "object", "properties": {"labels": {"default": {}}}});
        let schemas = json!({"g.v1.A": published, "Meta": meta});
        let document = Document::read(json!({"openapi": "3.0.0", "components": {"schemas": schemas}}).into());
        let of = TypeName { api_version: "g/v1".to_owned(), kind: "A".to_owned() };
        let found = unpublished(schema, &of, Some(&document.expect("a document"))).expect("a sound document");
        found.into_iter().map(|Unpublished { path, why }| format!("{path} {why:?}")).collect()
    }

    #[test]
    fn each_difference_has_its_reason() {
        let text = |default: &str| json!({"type": "string", "default": default});
        let meta = json!({"$ref": "#/components/schemas/Meta"});
        let embedded = |kind: Value, metadata: Value| {
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"kind": kind, "metadata": metadata}})
        };
        let of = |properties: Value| json!({"type": "object", "properties": properties});
        let schema = of(json!({"spec": of(json!({
            "same": text("a"), "other": text("a"), "gone": text("a"), "pod": embedded(text("Pod"), json!({
                "type": "object",
            })),
        }))}));
        let published = of(json!({"metadata": meta, "spec": of(json!({
            "same": text("a"), "other": text("b"), "new": text("a"),
            "pod": embedded(json!({"type": "string"}), meta),
        }))}));
        let expected =
            [".spec.gone Missing", ".spec.new Unknown", ".spec.other Another", ".spec.pod.kind Replaced"];
        assert_eq!(found(&schema, &published), expected);
        assert_eq!(found(&schema, &schema), <[&str; 0]>::default());
        let loose = json!({"properties": {"spec": {"default": {}}}});
        assert_eq!(found(&loose, &json!({"type": "object"})), [".spec NonStructural"]);
        let of = TypeName { api_version: "g/v1".to_owned(), kind: "A".to_owned() };
        let nothing = unpublished(&loose, &of, None).expect("no document");
        assert_eq!(nothing[0].why, Why::Undescribed);
    }
}
