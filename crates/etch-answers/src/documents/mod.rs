//! What a document is, as a CRD, an object or an EmbeddedSchema, and why it cannot be read as one.

mod embedded;
mod error;

use etch_core::crd::Crd;
use etch_core::object::Object;
use kube_manifests::{Document, Origin};
use serde_json::Value;

pub use embedded::{Embedded, EmbeddedError, embedded};
pub use error::{Reason, SourceError};

/// The document as a CRD.
///
/// # Errors
/// It is none of `apiextensions.k8s.io/v1`, or cannot be read as one.
pub fn crd(document: &Document) -> Result<Crd, SourceError> {
    is_current_crd(document)?;
    Crd::read(&document.json)
        .map_err(|error| SourceError { origin: document.origin.clone(), reason: Reason::Crd(error) })
}

/// Makes sure that the document is a CRD of `apiextensions.k8s.io/v1`, without reading its schemas.
///
/// # Errors
/// It is something else, or of another version.
pub fn is_current_crd(document: &Document) -> Result<(), SourceError> {
    let reason = match document.is_crd() {
        false => Reason::NoCrd { found: document.what() },
        true if document.api_version() == "apiextensions.k8s.io/v1" => return Ok(()),
        true => Reason::OtherCrd { api_version: document.api_version().to_owned() },
    };
    Err(SourceError { origin: document.origin.clone(), reason })
}

/// The document as an object of any type.
///
/// # Errors
/// It lacks `apiVersion`, `kind` or `metadata.name`.
pub fn object(document: Document) -> Result<(Origin, Object), SourceError> {
    named(document, &["name"])
}

/// The document as what `kubectl create` makes an object of: the API server may give it its name.
///
/// # Errors
/// It lacks `apiVersion`, `kind`, or both of `metadata.name` and `metadata.generateName`.
pub fn manifest(document: Document) -> Result<(Origin, Object), SourceError> {
    named(document, &["name", "generateName"])
}

/// The document as an object that has a name in one of these fields.
fn named(document: Document, fields: &[&str]) -> Result<(Origin, Object), SourceError> {
    let is_named = |document: &Document| {
        let metadata = document.json.get("metadata");
        let mut names = fields.iter().filter_map(|field| metadata?.get(field));
        names.any(Value::is_string)
    };
    let missing = match &document {
        document if document.api_version().is_empty() => "apiVersion",
        document if document.kind().is_empty() => "kind",
        document if !is_named(document) => "metadata.name",
        _ => return Ok((document.origin, Object::from(document.json))),
    };
    Err(SourceError { origin: document.origin, reason: Reason::NoObject { missing } })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn document(text: &str) -> Document {
        let mut found = None;
        let _ = kube_manifests::read("stdin", text.into(), &mut |document| {
            found = document.ok();
            ControlFlow::Break(())
        });
        found.expect("YAML")
    }

    #[test]
    fn documents_become_crds_and_objects() {
        let of = |text: &str| document(text);
        let error = |text: &str| crd(&of(text)).expect_err("no CRD").to_string();
        assert_eq!(
            error("kind: Deployment\napiVersion: apps/v1"),
            "stdin: contains no CustomResourceDefinition: found Deployment of apps/v1"
        );
        for version in ["v1beta1", "v2"] {
            assert_eq!(
                error(&format!("kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/{version}")),
                format!(
                    "stdin: is a CustomResourceDefinition of apiextensions.k8s.io/{version}; convert it to \
                     apiextensions.k8s.io/v1"
                )
            );
        }
        assert!(
            error("kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1")
                .contains("spec is missing")
        );
        let lacking = object(of("kind: K\napiVersion: g/v1\nmetadata: {}")).expect_err("no name");
        let unnamed = "stdin: is not a Kubernetes object: metadata.name is missing";
        assert_eq!(lacking.to_string(), unnamed);
        let generated = || of("kind: K\napiVersion: g/v1\nmetadata: {generateName: a-}");
        assert_eq!(object(generated()).expect_err("no name").to_string(), unnamed);
        assert!(manifest(generated()).is_ok());
    }
}
