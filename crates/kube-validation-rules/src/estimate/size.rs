//! The sizes that can be known before a rule runs: of literals, by type, and from the schema.
//!
//! Source: cel-go `checker/cost.go` (`computeExprSize`, `isScalar`), and `sizeEstimator` of
//! apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`.

use crate::model::Node;
use crate::range::Range;
use crate::tree::Expr;
use crate::types::Type;
use crate::value::Value;

/// How large the values are that an expression reads.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'s> {
    pub(crate) of: Roots<'s>,
    /// The most elements of what has no limit, where that is not as many as a request can hold, or any number
    /// if it is not in a schema.
    pub(crate) assumed: Option<u64>,
}

/// The nodes that paths begin at.
#[derive(Clone, Copy)]
pub(crate) enum Roots<'s> {
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
    pub(super) fn at(&self, path: &[&str]) -> Option<Range> {
        of_path(self.of.node(path.first()?)?, path, self.assumed)
    }

    /// Of a value of which nothing is known.
    pub(super) fn unknown(&self) -> Range {
        self.assumed.map_or(Range::UNKNOWN, |max| Range { min: 0, max })
    }
}

/// The size of what is written out.
pub(super) fn of_literal(expr: &Expr) -> Option<Range> {
    let size = match expr {
        Expr::Literal(Value::String(text)) => text.as_str().chars().count(),
        Expr::Literal(Value::Bytes(bytes)) => bytes.len(),
        Expr::Literal(_) => 1,
        Expr::List(items) => items.len(),
        Expr::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::fixed(size as u64))
}

/// Whether all values of a type are of one size.
pub(super) fn is_scalar(ty: &Type<'_>) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

/// The most that the schema allows at the end of a path whose first part is a variable; the assumed number of
/// elements if it sets no limit.
fn of_path(root: &Node, path: &[&str], assumed: Option<u64>) -> Option<Range> {
    let (_, steps) = path.split_first()?;
    let mut at = Some(root);
    for step in steps {
        // Keys of maps have no size to the server, and nothing below them.
        let node = at?;
        at = match *step {
            "@items" | "@values" => Some(node.element()?),
            "@keys" if node.is_map() => None,
            "@keys" => return None,
            name => Some(node.declared_field(name)?),
        };
    }
    let max = at.map_or(0, |node| match assumed {
        Some(assumed) if !node.extent.is_limited => assumed,
        _ => node.extent.elements,
    });
    Some(Range { min: 0, max })
}
