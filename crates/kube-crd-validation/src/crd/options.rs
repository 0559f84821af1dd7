//! How strict the checks are. A new CRD is checked by everything, and `ratchet` decides for an update.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`, `validationOptions`.

use std::collections::HashSet;

/// The types that a schema may name.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// How strict to be.
#[derive(Clone, Debug)]
pub(super) struct Options<'d> {
    pub(super) require_recognized_review: bool,
    pub(super) require_immutable_names: bool,
    pub(super) require_schema: bool,
    pub(super) require_valid_types: bool,
    pub(super) require_structural: bool,
    pub(super) require_pruned_defaults: bool,
    pub(super) require_atomic_sets: bool,
    pub(super) require_sound_list_keys: bool,
    pub(super) allow_invalid_ca_bundle: bool,
    /// The expressions of the CRD before.
    pub(super) known_rules: HashSet<&'d str>,
    pub(super) known_messages: HashSet<&'d str>,
    /// Versions whose schema stays as it is: their rules may cost more than the limit.
    pub(super) unchanged: HashSet<&'d str>,
    /// Whether the limit of single rules holds.
    pub(super) limit_rules: bool,
    /// Where too many selectable fields may stay: at these versions, and with an empty name at the top.
    pub(super) many_selectable: HashSet<&'d str>,
    /// The minor version of the server, for what releases see differently.
    pub(super) minor: u32,
}

impl<'d> Options<'d> {
    /// For a new CRD: everything is required.
    pub(super) fn strict(minor: u32) -> Self {
        Self {
            require_recognized_review: true,
            require_immutable_names: false,
            require_schema: true,
            require_valid_types: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_sets: true,
            require_sound_list_keys: true,
            allow_invalid_ca_bundle: true,
            known_rules: HashSet::new(),
            known_messages: HashSet::new(),
            unchanged: HashSet::new(),
            limit_rules: true,
            many_selectable: HashSet::new(),
            minor,
        }
    }

    /// The options for one version.
    pub(super) fn for_version(&self, version: &str) -> Self {
        Self { limit_rules: self.limit_rules && !self.unchanged.contains(version), ..self.clone() }
    }
}
