//! The steps of the upgrade of one CRD, by what was read of it.

use etch_core::crd::{Crd, CrdError};
use etch_lint::upgrade_plan::{DryRun, Policy, Upgrade, UpgradePlan};
use kube_structural_schema::json::Json;

use super::typed::Typed;
use crate::impact::given::with_status;
use crate::impact::print::persist_flags;
use crate::impact::{CrdImpact, Looked};

/// What is planned for one CRD.
pub struct Planned {
    pub(super) impact: CrdImpact,
    /// Whether the objects were looked at.
    pub(super) has_objects: bool,
    pub(super) dry_run: DryRun,
    pub(super) plan: UpgradePlan,
}

impl Planned {
    /// Plans an upgrade. `given` is the CRD before as a file has it, and `live` whether the cluster is looked
    /// at.
    ///
    /// # Errors
    /// The CRD before cannot be read.
    pub fn new(
        looked: Looked,
        given: Option<&Json>,
        live: bool,
        dry_run: DryRun,
        typed: &Typed<'_>,
    ) -> Result<Self, CrdError> {
        let Looked { impact, new, present, .. } = looked;
        let name = new.crd.name();
        let installed = present.as_ref().map(|(document, _)| document);
        let old = match (given, installed) {
            // It is new there.
            (_, None) if live => None,
            // Only a cluster knows which versions are stored.
            (Some(written), Some(installed)) => Some(with_status(written, installed)),
            (Some(written), None) => Some(written.clone()),
            (None, installed) => installed.cloned(),
        };
        let read = old.as_ref().map(Crd::read).transpose()?;
        let objects = Some(&impact.tally).filter(|_| live && present.is_some());
        let rules = &impact.rules;
        let settings = rules.settings();
        let policy = Policy {
            name: settings.map(|settings| settings.policy.as_str()),
            writes: settings.is_some() && rules.idle().is_none(),
            idle: rules.idle(),
            terms: rules.terms(),
            follow: settings.map(|settings| &settings.follow[..]).unwrap_or_default(),
            settle: settings.map(|settings| settings.settle).unwrap_or_default(),
            canary: settings.and_then(|settings| settings.canary),
        };
        let is_from_cluster = given.is_none() && old.is_some();
        let words = typed.words(persist_flags(&rules.terms()), is_from_cluster.then_some(name));
        let plan = UpgradePlan::new(&Upgrade {
            old: old.as_ref().zip(read.as_ref()),
            new: (&new.written, &new.crd),
            refusals: &impact.refusals,
            dry_run: &dry_run,
            incompatible: &impact.incompatible,
            schemas: &impact.schemas,
            objects,
            policy,
            words: &words,
        });
        Ok(Self { impact, has_objects: live, dry_run, plan })
    }

    /// Whether there is nothing to do, or only to apply the CRD.
    pub fn is_clean(&self) -> bool {
        self.plan.is_clean()
    }
}
