//! What a node of a schema inherits from those above it.

use std::rc::Rc;

use super::scope::Scope;
use crate::field::Field;

/// What a node inherits.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing<'w> {
    /// Why there must be no defaults.
    pub(super) no_defaults: Option<Rc<str>>,
    /// Whether it is in the type or metadata of a resource.
    pub(super) in_metadata: bool,
    /// The highest node whose parts cannot be found again in an older object.
    pub(super) uncorrelatable: Option<Rc<str>>,
    /// What rules may know; `None` if they are not looked at.
    pub(super) scope: Option<&'w Scope<'w>>,
}

impl Standing<'_> {
    /// Records that the parts of a node are not found again; the node is where the place ends that is so
    /// long.
    pub(super) fn forbid_old_self(&mut self, at: &Field, end: usize) {
        if self.uncorrelatable.is_none() {
            self.uncorrelatable = Some(at.up_to(end).into());
        }
    }
}
