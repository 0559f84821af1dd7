//! What a StorageVersionMigration does to the objects of a CRD: it writes each as the API server shows it,
//! whatever the policies are.

use super::named::NamedObjects;
use super::{Extent, Findings, ObjectFindings};
use crate::audit::{State, by_view, overall};
use crate::crd::Crd;
use crate::impact::Problem;
use crate::object::Object;
use crate::plan::{Record, still_hidden};

/// The objects of a CRD that are to be written.
#[derive(Debug, Default)]
pub struct MigrationBuilder {
    objects: u64,
    /// Those that lose fields which only etcd still holds.
    losing: NamedObjects,
    /// Those whose defaults are stored by it.
    filled: NamedObjects,
    /// Those whose defaults are perhaps stored by it: nothing shows what etcd holds.
    maybe_filled: NamedObjects,
    /// Those that were not checked.
    too_deep: NamedObjects,
}

impl ObjectFindings for MigrationBuilder {
    fn add(&mut self, object: &Object, crd: &Crd, record: &Record) {
        self.objects += 1;
        if !still_hidden(object, crd, record).is_empty() {
            self.losing.add(object);
        }
        if object.is_too_deep() {
            return self.too_deep.add(object);
        }
        if !crd.gives_defaults() {
            return;
        }
        match overall(&by_view(object, crd, record, false)) {
            State::Stored => {}
            State::Unknown => self.maybe_filled.add(object),
            State::Gap | State::Phantom => self.filled.add(object),
        }
    }

    fn findings(&self, crd: &Crd, extent: &Extent) -> Findings {
        let all = extent.of(self.objects);
        let too_deep = Problem::TooDeep.to_string();
        let found = [
            (&self.losing, "the migration destroys hidden fields"),
            (&self.filled, "the migration stores defaults that etcd lacks"),
            (&self.maybe_filled, "the migration may store defaults that etcd lacks"),
            (&self.too_deep, too_deep.as_str()),
        ];
        let found = found.iter().filter(|(named, _)| named.objects > 0);
        let lines =
            found.map(|(named, what)| format!("{} of {all}: {what}: {}", named.objects, named.listed()));
        Findings {
            lines: lines.collect(),
            does_harm: self.losing.objects > 0,
            unchecked: match extent {
                Extent::Whole => None,
                Extent::Part { why, of } => {
                    let about = of.map(|of| format!(" of about {of}")).unwrap_or_default();
                    Some(unchecked(crd.name(), &format!(", {}{about}", self.objects), why))
                }
            },
        }
    }

    fn unknown(crd: &str, why: &str) -> Findings {
        Findings { unchecked: Some(unchecked(crd, "", why)), ..Findings::default() }
    }
}

fn unchecked(crd: &str, checked: &str, why: &str) -> String {
    format!("not all objects checked{checked}: {why}; `etch audit {crd}` checks all")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things, with_spec};
    use crate::plan::HiddenEvidence;

    fn object(name: &str, spec: serde_json::Value, fields: serde_json::Value) -> Object {
        let owner = json!({ "manager": "user", "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsV1": { "f:spec": fields } });
        Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": spec,
            "metadata": { "name": name, "namespace": "ns", "uid": name, "resourceVersion": "7",
                "managedFields": [owner] },
        }))
    }

    #[test]
    fn lost_fields_are_harm_and_stored_defaults_are_not() {
        let crd = things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        let record = Record::default();
        let mut builder = MigrationBuilder::default();
        builder.add(&object("a", json!({ "size": 5 }), json!({})), &crd, &record);
        builder.add(&object("b", json!({ "size": 6 }), json!({ "f:size": {} })), &crd, &record);
        let found = builder.findings(&crd, &Extent::Whole);
        assert_eq!(found.lines, ["1 of 2 objects: the migration may store defaults that etcd lacks: ns/a"]);
        assert!(!found.does_harm && found.unchecked.is_none());
        builder.add(&object("c", json!({ "size": 6 }), json!({ "f:old": {} })), &crd, &record);
        let why = Extent::Part { why: "late".to_owned(), of: Some(9) };
        let found = builder.findings(&crd, &why);
        assert_eq!(
            found.lines[0],
            "1 of the 3 that were checked: the migration destroys hidden fields: ns/c"
        );
        assert!(found.does_harm);
        let unchecked = found.unchecked.expect("a reason");
        assert!(unchecked.starts_with("not all objects checked, 3 of about 9: late; "), "{unchecked}");
    }

    #[test]
    fn what_is_known_to_be_gone_is_not_destroyed_again() {
        let crd = things(with_spec(json!({ "size": { "type": "integer" } })));
        let gone = [(String::from("c"), [".spec.old".parse().expect("a path")].into())];
        let hidden = HiddenEvidence { cleared: gone.into(), ..HiddenEvidence::default() };
        let record = Record { hidden: hidden.into(), ..Record::default() };
        let mut builder = MigrationBuilder::default();
        builder.add(&object("c", json!({ "size": 6 }), json!({ "f:old": {} })), &crd, &record);
        assert_eq!(builder.findings(&crd, &Extent::Whole), Findings::default());
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_is_named() {
        let crd = things(with_spec(json!({ "size": { "type": "integer" } })));
        let outline =
            json!({ "metadata": { "name": "a", "namespace": "ns", "uid": "a", "resourceVersion": "7" } });
        let mut builder = MigrationBuilder::default();
        let record = Record { through: Some(9), ..Record::default() };
        builder.add(&Object::too_deep(outline.into()), &crd, &record);
        let found = builder.findings(&crd, &Extent::Whole);
        assert_eq!(
            (&*found.lines, found.does_harm),
            (
                &["1 of 1 object: not checked: it is nested more than 1000 levels deep: ns/a".to_owned()][..],
                false
            )
        );
    }
}
