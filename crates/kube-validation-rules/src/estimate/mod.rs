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

pub(super) use range::Range;

/// The sizes at the end of paths, of which the first part is a variable.
pub(super) type Sizes<'s> = dyn Fn(&[&str]) -> Option<Range> + 's;

/// The most that an expression may cost to a server with this minor version, in the units of its budget.
pub(super) fn max_cost(tree: &Tree, checked: &Checked<'_>, sizes: &Sizes<'_>, server_minor: u32) -> u64 {
    coster::Coster::new(tree, checked, sizes, server_minor).cost(tree.root).max
}

/// What the schema of `root` says of a path, whatever the variable at its beginning.
pub(super) fn sizes_below(root: &Node) -> impl Fn(&[&str]) -> Option<Range> {
    |path| size::of_path(root, path)
}
