//! What is known of the objects of a CRD: numbers, problems, and what the report keeps for the next run.

pub(super) mod changed_defaults;
pub(super) mod checkpoint;
pub(super) mod dropped_fields;
pub(super) mod open_report;
pub(super) mod rejected;
pub(super) mod report;
pub(super) mod served;
pub(super) mod size;
pub(super) mod skipped;
pub(super) mod tally;

#[cfg(test)]
mod tests;
