//! The text of a Go file, and what its names stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use tree_sitter::Node;

/// What the parts of a file have in common.
#[derive(Clone)]
pub(super) struct Source<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) file: &'a Arc<str>,
    /// The import path of the package.
    pub(super) own: &'a str,
    /// Import paths by qualifier.
    pub(super) imports: BTreeMap<String, String>,
    /// The names of types that a generic type has as parameters, in their order, while it is read.
    pub(super) parameters: Vec<String>,
    /// The value of `iota`, while a constant is read.
    pub(super) iota: usize,
}

impl<'a> Source<'a> {
    /// The text of a node; empty where a node has none, as the missing ones that a parser makes up.
    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        node.utf8_text(self.bytes).unwrap_or_default()
    }

    /// The import path that a qualifier stands for.
    pub(super) fn import(&self, qualifier: &str) -> Option<&str> {
        self.imports.get(qualifier).map(String::as_str)
    }
}
