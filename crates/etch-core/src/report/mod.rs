//! The results for the objects of a CRD: numbers, problems, and what the report keeps for the next run.

pub(crate) mod carried;
pub mod changed_defaults;
pub mod checkpoint;
pub mod dropped_fields;
pub mod former_defaults;
pub mod ledger;
pub mod open_report;
pub mod recorded_defaults;
pub mod rejected;
pub mod schema;
pub mod served;
pub mod size;
pub mod skipped;
pub mod state;
pub mod stored_versions;
pub mod tally;
pub mod versions;

#[cfg(test)]
mod tests;
