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
use range::Range;

/// How large the values are that an expression reads.
#[derive(Clone, Copy)]
pub(super) struct Sizes<'s> {
    pub(super) of: Roots<'s>,
    /// The most elements of what has no limit, where that is not as many as a request can hold, or any number if it is not in a
    /// schema.
    pub(super) assumed: Option<u64>,
}

/// The most that an expression may cost to a server with this minor version, in the units of its budget.
pub(super) fn max_cost(tree: &Tree, checked: &Checked<'_>, sizes: Sizes<'_>, server_minor: u32) -> u64 {
    coster::Coster::new(tree, checked, sizes, server_minor).cost(tree.root).max
}

/// The nodes that paths begin at.
#[derive(Clone, Copy)]
pub(super) enum Roots<'s> {
    /// The place of a rule, whatever the variable.
    Place(&'s Node),
    /// The variable's own, by its place among these.
    Variables(&'s [(Box<str>, usize)], &'s [Node]),
}

impl Roots<'_> {
    fn node(&self, variable: &str) -> Option<&Node> {
        match self {
            Self::Place(node) => Some(node),
            Self::Variables(named, nodes) => {
                named.iter().find(|(name, _)| **name == *variable).map(|(_, place)| &nodes[*place])
            }
        }
    }
}

impl Sizes<'_> {
    fn of_path(&self, path: &[&str]) -> Option<Range> {
        size::of_path(self.of.node(path.first()?)?, path, self.assumed)
    }

    /// Of a value of which nothing is known.
    fn unknown(&self) -> Range {
        self.assumed.map_or(Range::UNKNOWN, |max| Range { min: 0, max })
    }
}
