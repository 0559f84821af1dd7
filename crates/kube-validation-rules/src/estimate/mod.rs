//! What a rule may cost at most: the estimate that the server makes when a CRD is written.
//! It must not run anything; what evaluation costs is in `cost`.

mod calls;
mod coster;
mod extensions;
mod kubernetes;
mod path;
mod range;
mod size;
mod units;

use crate::check::Checked;
use crate::model::Node;
use crate::tree::Tree;

/// The most that an expression may cost to a server with this minor version, in the units of its budget. All sizes are looked up
/// below `root`.
pub(super) fn max_cost(tree: &Tree, checked: &Checked<'_>, root: &Node, server_minor: u32) -> u64 {
    coster::Coster::new(tree, checked, root, server_minor).cost(tree.root).max
}
