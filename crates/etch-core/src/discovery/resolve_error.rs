//! Why no CRD is meant by what a user has typed, as kubectl words it.

use crate::call_error::CallError;
use kube_crd_validation::is_object_name;

/// Why no CRD is meant by a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No served type has this name.
    #[error("the server doesn't have a resource type {name:?}{}", suggested(name, near))]
    Unknown {
        /// The text.
        name: String,
        /// CRDs with a similar name.
        near: Vec<String>,
    },
    /// The type of this name is built in, or comes from an aggregated API.
    #[error(
        "{resource} ({kind}) is not a custom resource: no CRD defines it, and Etch works on the objects of \
         CRDs only"
    )]
    NotCustom {
        /// Plural and group; only the plural in the core group.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// More than one CRD has this name.
    #[error("{name:?} may be any of {}; say which", candidates.join(", "))]
    Ambiguous {
        /// The text.
        name: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// See [`CallError`].
    #[error(transparent)]
    Call(#[from] CallError),
}

fn suggested(name: &str, near: &[String]) -> String {
    match near {
        [] if name.contains('/') => "; give the type alone, without an object".to_owned(),
        [] if name.contains(',') => "; separate types by spaces".to_owned(),
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// Whether a CRD can have this name. What is behind a slash would be a subresource of it.
pub fn may_be_crd(name: &str) -> bool {
    name.contains('.') && is_object_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_crd_leads_to_no_other_path() {
        assert!(may_be_crd("things.example.com"));
        for name in ["things", "things.example.com/status", "crd/things.example.com", "a.b?c", "../a.b"] {
            assert!(!may_be_crd(name), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_kubectl_says_it() {
        let unknown = |name: &str, near: &[&str]| {
            let near = near.iter().map(|near| (*near).to_owned()).collect();
            ResolveError::Unknown { name: name.to_owned(), near }.to_string()
        };
        for (name, near, expected) in [
            ("x", &[][..], "\"x\""),
            ("x", &["a.b", "c.d"], "\"x\"; did you mean a.b or c.d?"),
            ("x/y", &[], "\"x/y\"; give the type alone, without an object"),
            ("x,y", &[], "\"x,y\"; separate types by spaces"),
        ] {
            assert_eq!(unknown(name, near), format!("the server doesn't have a resource type {expected}"));
        }
    }
}
