//! What is wrong with a CRD itself, whatever its objects are.
//! It must not show a default's value, only its place.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use etch_core::api::{Mode, Settings};
use etch_core::condition::{self, Condition};
use etch_core::crd::Crd;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Pool;
use kube_structural_schema::schema::rules::crd::{self, Verdict};

/// How long the read of a CRD may take before others are read beside it.
pub(in crate::controller) const READ_PATIENCE: Duration = Duration::from_secs(5);

/// What is wrong with a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::controller) struct SchemaFindings {
    /// Violations of the structural schema rules, in the server's words.
    pub(in crate::controller) non_structural: Vec<String>,
    /// Places of defaults that are themselves invalid.
    pub(in crate::controller) invalid_defaults: Vec<String>,
}

impl SchemaFindings {
    /// The settings under which objects are reconciled: those of a CRD whose schema is not structural are counted and not written. The
    /// server fills in its defaults all the same, but keeps owners by another schema than its own (fact D12).
    pub(in crate::controller) fn permitted(&self, settings: Settings) -> Settings {
        let mode = match settings.mode {
            Mode::Persist if !self.non_structural.is_empty() => Mode::Audit,
            mode => mode,
        };
        Settings { mode, ..settings }
    }
}

/// A CRD as it was read.
#[derive(Debug)]
pub(in crate::controller) struct Checked {
    /// None where a schema cannot be read: what is wrong with it is in `findings`.
    pub(in crate::controller) crd: Option<Arc<Crd>>,
    pub(in crate::controller) findings: SchemaFindings,
    pub(in crate::controller) generation: i64,
    /// Its resource version.
    pub(in crate::controller) revision: String,
    /// Our conditions, as it carries them.
    pub(in crate::controller) conditions: Vec<Condition>,
    /// When it was asked for.
    pub(in crate::controller) asked: Instant,
}

/// Checks a CRD: whether its schema is structural, and its defaults are valid. `pool` is of the schemas that are held already.
pub(in crate::controller) fn check(document: &Json, asked: Instant, pool: &Pool) -> Checked {
    let (crd, findings) = judge(document, pool);
    let metadata = &document["metadata"];
    Checked {
        crd: crd.map(Arc::new),
        findings,
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        revision: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        conditions: condition::present(document),
        asked,
    }
}

fn judge(document: &Json, pool: &Pool) -> (Option<Crd>, SchemaFindings) {
    let verdict = crd::judge(&document["spec"]);
    let non_structural = match &verdict {
        Verdict::Structural => Vec::new(),
        Verdict::Violations(violations) => {
            violations.iter().map(|violation| violation.text.clone()).collect()
        }
        Verdict::Unreadable { .. } => verdict.message().into_iter().collect(),
    };
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
