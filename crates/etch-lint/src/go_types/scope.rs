//! Where a type is written: its package, and what the parameters of the generic type around it stand for.

use std::sync::Arc;

use super::package::{Package, Type, TypeName};

/// What the names and parameters in a type mean.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The package.
    pub package: &'a Package,
    /// The arguments of the generic type around it, each with the scope in which it is written itself.
    arguments: Option<Arc<[(Self, &'a Type)]>>,
}

impl<'a> Scope<'a> {
    /// The scope within a declaration of a package to which a name in this scope leads.
    pub(super) fn within(&self, package: &'a Package, name: &'a TypeName) -> Self {
        let arguments = || name.arguments.iter().map(|argument| (self.clone(), argument)).collect();
        Self { package, arguments: (!name.arguments.is_empty()).then(arguments) }
    }

    /// Whether it is within a generic type.
    pub fn is_generic(&self) -> bool {
        self.arguments.is_some()
    }

    /// What a parameter stands for; `None` where that is not given.
    pub(super) fn argument(&self, index: usize) -> Option<(Self, &'a Type)> {
        self.arguments.as_ref()?.get(index).cloned()
    }
}

impl<'a> From<&'a Package> for Scope<'a> {
    fn from(package: &'a Package) -> Self {
        Self { package, arguments: None }
    }
}
