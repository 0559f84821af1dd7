//! What is wrong with a CRD itself: a schema that is not structural, and defaults that are invalid.

use crate::api::{Mode, Settings};
use crate::crd::Crd;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Pool;
use kube_structural_schema::schema::rules::crd;

/// What is wrong with a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaFindings {
    /// Violations of the structural schema rules, in the server's words.
    pub non_structural: Vec<String>,
    /// Places of defaults that are themselves invalid.
    pub invalid_defaults: Vec<String>,
}

impl SchemaFindings {
    /// Whether nothing is wrong.
    pub fn is_none(&self) -> bool {
        self.non_structural.is_empty() && self.invalid_defaults.is_empty()
    }

    /// The settings under which objects are reconciled: those of a CRD whose schema is not structural are
    /// counted and not written. The server still fills in its defaults, but keeps owners by another schema
    /// than its own (fact D12).
    pub fn permitted(&self, settings: Settings) -> Settings {
        let mode = match settings.mode {
            Mode::Persist if !self.non_structural.is_empty() => Mode::Audit,
            mode => mode,
        };
        Settings { mode, ..settings }
    }
}

/// Reads a CRD, if it can be read, and finds what is wrong with it. `pool` is of the schemas that are held
/// already.
pub fn judge(document: &Json, pool: &Pool) -> (Option<Crd>, SchemaFindings) {
    let non_structural = crd::judge(&document["spec"]).texts();
    match Crd::read_sharing(document, pool) {
        Ok(crd) => {
            let invalid_defaults = crd.invalid_defaults().iter().map(ToString::to_string).collect();
            (Some(crd), SchemaFindings { non_structural, invalid_defaults })
        }
        Err(error) => {
            let non_structural = match non_structural.is_empty() {
                true => vec![error.to_string()],
                false => non_structural,
            };
            (None, SchemaFindings { non_structural, ..SchemaFindings::default() })
        }
    }
}
