//! Checks a CRD itself: its schema and its defaults.
//! It must not show a default's value, only its place.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use crate::condition::{self, Condition};
use crate::crd::Crd;
use crate::engine::status::CrdRevision;
use crate::findings::{SchemaFindings, judge};
use crate::plan::Shown;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Pool;

/// A CRD as it was read.
#[derive(Debug)]
pub struct Checked {
    /// `None` if a schema cannot be read: what is wrong with it is in `findings`.
    pub crd: Option<Arc<Crd>>,
    /// What is wrong with its schemas.
    pub findings: SchemaFindings,
    /// Its generation.
    pub generation: i64,
    /// Its resource version.
    pub revision: String,
    /// What it shows of its objects by itself.
    pub shown: Shown,
    /// Our conditions, as it carries them.
    pub conditions: Vec<Condition>,
    /// The CRD as it carries them.
    pub conditions_at: CrdRevision,
    /// When it was asked for.
    pub asked: Instant,
}

/// Checks a CRD: whether its schema is structural, and its defaults are valid. `pool` is of the schemas that
/// are held already.
pub fn check(document: &Json, asked: Instant, pool: &Pool, now: Timestamp) -> Checked {
    let (crd, findings) = judge(document, pool);
    let metadata = &document["metadata"];
    Checked {
        shown: crd.as_ref().map(|crd| Shown::by(document, crd, now)).unwrap_or_default(),
        crd: crd.map(Arc::new),
        findings,
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        revision: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        conditions: condition::present(document),
        conditions_at: CrdRevision::of(document),
        asked,
    }
}
