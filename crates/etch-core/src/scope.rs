//! Which objects of a resource are meant.

use crate::namespaces::Namespaces;

/// Which objects of a resource are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Those of one namespace.
    Namespace(String),
    /// Those of some namespaces, because permissions reach no further.
    Namespaces(Namespaces),
}

impl Scope {
    /// The namespace, if it is one by itself.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::All | Self::Namespaces(_) => None,
            Self::Namespace(namespace) => Some(namespace),
        }
    }

    /// The namespaces that are listed and watched one by one; a single `None` for all together.
    pub fn lists(&self) -> Vec<Option<&str>> {
        match self {
            Self::All => vec![None],
            Self::Namespace(namespace) => vec![Some(namespace)],
            Self::Namespaces(all) => all.names().iter().map(|name| Some(name.as_str())).collect(),
        }
    }

    /// Whether an object of this namespace, or of none, is in it.
    pub fn contains(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(wanted) => namespace == Some(wanted),
            Self::Namespaces(wanted) => namespace.is_some_and(|namespace| wanted.contains(namespace)),
        }
    }

    /// The part of it in which permissions for the objects of a namespace are the same.
    #[must_use]
    pub fn around(&self, namespace: Option<&str>) -> Self {
        match (self, namespace) {
            (Self::Namespaces(_), Some(namespace)) => Self::Namespace(namespace.to_owned()),
            (Self::All | Self::Namespace(_) | Self::Namespaces(_), _) => self.clone(),
        }
    }
}

impl From<Option<&Namespaces>> for Scope {
    /// These namespaces; all objects if there are none.
    fn from(within: Option<&Namespaces>) -> Self {
        within.map_or(Self::All, |namespaces| Self::Namespaces(namespaces.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_namespaces_are_listed_one_by_one_and_permitted_one_by_one() {
        let some = Namespaces::new(["b", "a"].map(str::to_owned));
        let some = Scope::from(some.as_ref());
        assert_eq!(some.lists(), [Some("a"), Some("b")]);
        assert!(some.contains(Some("a")) && !some.contains(Some("c")) && !some.contains(None));
        assert_eq!(some.around(Some("b")), Scope::Namespace("b".to_owned()));
        assert_eq!((Scope::from(None), Scope::All.around(Some("b"))), (Scope::All, Scope::All));
        assert_eq!(Scope::All.lists(), [None]);
    }
}
