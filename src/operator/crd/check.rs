//! Checks a CRD itself: its schema and its defaults.
//! It must not show a default's value, only its place.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::operator::options::now;
use etch_core::condition::{self, Condition};
use etch_core::crd::Crd;
use etch_core::engine::status::CrdRevision;
use etch_core::findings::{SchemaFindings, judge};
use etch_core::plan::Shown;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Pool;

/// How long the read of a CRD may take before others are read beside it.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(5);

/// A CRD as it was read.
#[derive(Debug)]
pub(crate) struct Checked {
    /// `None` if a schema cannot be read: what is wrong with it is in `findings`.
    pub(crate) crd: Option<Arc<Crd>>,
    pub(crate) findings: SchemaFindings,
    pub(crate) generation: i64,
    /// Its resource version.
    pub(crate) revision: String,
    /// What it shows of its objects by itself.
    pub(crate) shown: Shown,
    /// Our conditions, as it carries them.
    pub(crate) conditions: Vec<Condition>,
    /// The CRD as it carries them.
    pub(crate) conditions_at: CrdRevision,
    /// When it was asked for.
    pub(crate) asked: Instant,
}

/// Checks a CRD: whether its schema is structural, and its defaults are valid. `pool` is of the schemas that
/// are held already.
pub(crate) fn check(document: &Json, asked: Instant, pool: &Pool) -> Checked {
    let (crd, findings) = judge(document, pool);
    let metadata = &document["metadata"];
    Checked {
        shown: crd.as_ref().map(|crd| Shown::by(document, crd, now())).unwrap_or_default(),
        crd: crd.map(Arc::new),
        findings,
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        revision: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        conditions: condition::present(document),
        conditions_at: CrdRevision::of(document),
        asked,
    }
}
