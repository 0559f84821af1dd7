//! Which part of a cluster a command works on, by the namespace that was named.

use std::io::{self, Write};

use etch_core::crd::Crd;
use etch_core::scope::Scope;
use serde_json::Value;

/// A CRD that was named, and whose objects are in no namespace.
#[derive(Debug, thiserror::Error)]
#[error("{crd} is cluster-scoped: remove --namespace {namespace}")]
pub struct ClusterScoped {
    crd: String,
    namespace: String,
}

/// Whether objects of a CRD can be in the scope.
///
/// # Errors
/// They cannot, although the CRD was named.
pub fn covers(scope: &Scope, crd: &Crd, is_named: bool) -> Result<bool, ClusterScoped> {
    match scope.namespace() {
        Some(namespace) if !crd.is_namespaced() && is_named => {
            Err(ClusterScoped { crd: crd.name().to_owned(), namespace: namespace.to_owned() })
        }
        _ => Ok(reaches(scope, crd)),
    }
}

/// Whether objects of a CRD can be in the scope.
pub fn reaches(scope: &Scope, crd: &Crd) -> bool {
    scope.namespace().is_none() || crd.is_namespaced()
}

/// Writes for people which namespace what follows is about.
///
/// # Errors
/// What the writer answers.
pub fn write(out: &mut dyn Write, scope: &Scope) -> io::Result<()> {
    scope.namespace().map_or(Ok(()), |namespace| writeln!(out, "Namespace: {namespace}\n"))
}

/// What is printed for programs, with the namespace that it is about.
pub fn in_document(mut document: Value, scope: &Scope) -> Value {
    if let Some(namespace) = scope.namespace() {
        document["namespace"] = namespace.into();
    }
    document
}

/// The scope in words, as the end of a sentence.
pub fn in_words(scope: &Scope) -> String {
    match scope.namespace() {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in all namespaces".to_owned(),
    }
}
