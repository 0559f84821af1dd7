//! What a rule may cost at most: the estimate that the server makes when a CRD is written.
//! What evaluation costs is in `cost`.

mod coster;
mod path;
mod size;

use crate::check::Checked;
use crate::tree::Tree;
pub(super) use size::{Roots, Sizes};

/// The most that an expression may cost to a server with this minor version, in the units of its budget.
pub(super) fn max_cost(tree: &Tree, checked: &Checked<'_>, sizes: Sizes<'_>, server_minor: u32) -> u64 {
    coster::Coster::new(tree, checked, sizes, server_minor).cost(tree.root).max
}
