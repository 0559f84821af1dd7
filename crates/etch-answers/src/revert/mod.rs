//! `etch revert`: what passes have stored and can be removed, and what stays.

mod print;
mod tally;

use std::sync::Arc;

use etch_core::crd::Crd;
use etch_core::plan::{RecordedDefault, Standing, Unstorable};
use kube_structural_schema::path::Path as FieldPath;

pub use self::print::{document, table};
pub use self::tally::Tally;

/// The outcomes for the objects of a CRD.
#[derive(Debug)]
pub struct CrdRevert {
    /// The CRD.
    pub crd: Arc<Crd>,
    /// The recorded defaults, each with whether its values can be removed.
    pub unstorable: Arc<Unstorable>,
    /// How many more defaults the schemas on record had than the report lists.
    pub more_defaults: u64,
    /// The defaults that the CRD still has and the one of `--to` lacks.
    pub wanted: Vec<FieldPath>,
    /// Whether values were removed, not only shown.
    pub removes: bool,
    /// The outcomes for its objects.
    pub tally: Tally,
    /// Why not all objects were processed.
    pub error: Option<String>,
}

/// The recorded defaults that the CRD of the cluster still has and another one lacks.
pub fn lacked(unstorable: &Unstorable, to: &Crd) -> Vec<FieldPath> {
    let still = unstorable.defaults().filter(|(_, standing)| matches!(standing, Standing::StillDefault(_)));
    let after = Unstorable::new(still.map(|(default, _)| default.clone()).collect(), to);
    let lacked = after.defaults().filter(|(_, standing)| !matches!(standing, Standing::StillDefault(_)));
    lacked.map(|(default, _)| default.path.clone()).collect()
}

impl CrdRevert {
    /// Whether nothing is left to remove, as far as that is known.
    pub fn is_clean(&self) -> bool {
        let is_known = |(default, standing): (&RecordedDefault, &Standing)| match standing {
            Standing::NoPass | Standing::NoValue => false,
            // The other value may be the one that is not on record.
            Standing::Removable => !(default.is_too_long && self.tally.keeps_another_value(&default.path)),
            Standing::StillDefault(_) | Standing::FieldGone | Standing::NotRemovable => true,
        };
        let are_known = self.more_defaults == 0 && self.unstorable.defaults().all(is_known);
        are_known && self.wanted.is_empty() && self.tally.counts.left() == 0
    }
}

#[cfg(test)]
mod tests {
    use etch_core::object::Object;
    use etch_core::object_machine::Reverted;
    use etch_core::plan::{Exceptions, KeptBecause, StoredDefault, Unstoring};
    use kube_structural_schema::json::Json;
    use serde_json::json;

    use super::*;

    /// After a pass that stored these values and, where `is_too_long`, another one at `.spec.size`.
    fn reverted(stored: &[i64], is_too_long: bool) -> CrdRevert {
        let size = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
        let crd = Crd::read(&Json::from(json!({
            "metadata": { "name": "tabs.example.com" },
            "spec": { "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" }, "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": size } } },
            }] },
        })))
        .expect("a CRD");
        let stored = stored.iter().map(|value| StoredDefault {
            value: json!(value).into(),
            through: 10,
            finished: jiff::Timestamp::UNIX_EPOCH,
            exceptions: Exceptions::default(),
        });
        let path: FieldPath = ".spec.size".parse().expect("a path");
        let recorded = RecordedDefault { path, stored: stored.collect(), is_too_long };
        CrdRevert {
            unstorable: Arc::new(Unstorable::new(vec![recorded], &crd)),
            crd: Arc::new(crd),
            more_defaults: 0,
            wanted: Vec::new(),
            removes: false,
            tally: Tally::new(None),
            error: None,
        }
    }

    #[test]
    fn what_may_be_left_is_not_clean() {
        assert!(reverted(&[1], false).is_clean());
        assert!(!reverted(&[], false).is_clean(), "no pass");
        assert!(!reverted(&[], true).is_clean(), "the value is not on record");
        let unlisted = CrdRevert { more_defaults: 1, ..reverted(&[1], false) };
        assert!(!unlisted.is_clean(), "the default is not on record");
    }

    #[test]
    fn another_value_may_be_the_one_that_is_not_on_record() {
        let is_clean = |is_too_long| {
            let mut reverted = reverted(&[1], is_too_long);
            let kept = vec![(".spec.size".parse().expect("a path"), KeptBecause::Changed)];
            let left = Unstoring { kept, ..Unstoring::default() };
            reverted.tally.add(Object::default().identity(), Reverted { left, ..Reverted::default() });
            reverted.is_clean()
        };
        assert!(is_clean(false) && !is_clean(true));
        assert!(reverted(&[1], true).is_clean(), "no object has another value");
    }
}
