//! What a schema is the schema of: some rules hold at the root only, or nowhere but there.

/// What a schema is the schema of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}
