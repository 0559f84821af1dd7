//! The steps of a CRD upgrade, in order, each with its reasons and a command to paste. The caller gives what
//! the server answers, what is incompatible and what happens to objects; what is not given is named as
//! unknown.

mod apply;
mod dry_run;
mod known;
mod objects;
mod schema;
mod step;
#[cfg(test)]
mod tests;
mod versions;
mod webhook;

pub use dry_run::{DryRun, applicable};
pub use known::{Policy, Upgrade, Words};
pub use step::{Phase, Step, StepKind, UpgradePlan};

impl UpgradePlan {
    /// The steps of an upgrade.
    pub fn new(upgrade: &Upgrade<'_>) -> Self {
        let mut plan = Self::default();
        schema::add(upgrade, &mut plan);
        objects::before(upgrade, &mut plan);
        versions::before(upgrade, &mut plan);
        webhook::add(upgrade, &mut plan);
        apply::add(upgrade, &mut plan);
        objects::after(upgrade, &mut plan);
        versions::after(upgrade, &mut plan);
        // Sorting is stable: within a phase the order is that of the calls above.
        plan.steps.sort_by_key(|step| step.phase);
        plan
    }
}
