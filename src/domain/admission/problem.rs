//! What prevents a declaration from being served.
//! It must not find it; see `compile`.

/// What is wrong with a declaration, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field of the `EmbeddedSchema`: `spec.rules[3].rule`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}
