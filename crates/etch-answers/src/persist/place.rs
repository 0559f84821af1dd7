//! `--after`: the object after which a pass resumes.
//! A word that cannot be an object's name is refused.

use etch_core::scope::Scope;
use kube_crd_validation::{is_namespace_name, is_object_name};

/// The object in the form in which a pass reports how far it has come: namespace, a slash, and name.
///
/// # Errors
/// No object of such a CRD can be called so, or it is outside the scope.
pub fn place(text: &str, is_namespaced: bool, scope: &Scope) -> Result<String, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    match (is_namespaced, namespace, scope.namespace()) {
        (true, Some(namespace), Some(scope)) if namespace != scope && is_namespace_name(namespace) => {
            Err(format!("not in namespace {scope}, and no other is processed"))
        }
        (true, Some(namespace), _) if is_namespace_name(namespace) && is_object_name(name) => {
            Ok(text.to_owned())
        }
        (true, None, Some(scope)) if is_object_name(name) => Ok(format!("{scope}/{name}")),
        (false, None | Some(""), _) if is_object_name(name) => Ok(format!("/{name}")),
        (true, ..) => Err("not a valid object name; give NAMESPACE/NAME".to_owned()),
        (false, ..) => Err("not a valid object name; the type is cluster-scoped, so give NAME".to_owned()),
    }
}

/// Namespace and name of an object in that form.
pub fn parts(place: &str) -> (Option<&str>, &str) {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    (Some(namespace).filter(|namespace| !namespace.is_empty()), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_object_can_be_called_is_taken() {
        let web = Scope::Namespace("web".to_owned());
        for (text, is_namespaced, scope, expected) in [
            ("web/a.b", true, &Scope::All, Some("web/a.b")),
            ("web/a", true, &web, Some("web/a")),
            ("a", true, &web, Some("web/a")),
            ("shop/a", true, &web, None),
            ("a", true, &Scope::All, None),
            ("/a", true, &Scope::All, None),
            ("web/", true, &Scope::All, None),
            ("web/a/b", true, &Scope::All, None),
            ("Any Word", true, &Scope::All, None),
            ("", true, &web, None),
            ("a", false, &Scope::All, Some("/a")),
            ("/a", false, &Scope::All, Some("/a")),
            ("web/a", false, &Scope::All, None),
            ("Any Word", false, &Scope::All, None),
            ("", false, &Scope::All, None),
        ] {
            assert_eq!(place(text, is_namespaced, scope).ok().as_deref(), expected, "{text:?}");
        }
        assert_eq!((parts("web/a"), parts("/a")), ((Some("web"), "a"), (None, "a")));
    }
}
