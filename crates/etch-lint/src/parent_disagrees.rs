//! ETCH006: defaults of objects that differ from the defaults of their fields.

use serde_json::Value;

use super::rule::{Report, Rule, Severity};
use super::site::{requires, shown};
use super::subject::Subject;
use kube_structural_schema::json::same;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

pub(super) const RULE: Rule = Rule {
    code: "ETCH006",
    name: "parent-default-disagrees",
    severity: Severity::Warning,
    summary: "the default of an object disagrees with its fields' defaults, or lacks a required field",
    help: "\
If an object is absent, the server fills in its own default; if it is present, the server fills in each
missing field with the field's default. If the two differ, writing `{}` or setting any other field changes the
value of a third one.

Define each default once: give the object `default: {}` and leave the rest to its fields. A required field is
the exception: the object's default must contain it.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if let Some(default @ Value::Object(_)) = site.default() {
            let mut compare = Compare { version: &version.name, top: site.path(), report };
            let at = compare.top.clone();
            compare.object(default, site.schema, &at);
        }
    });
}

struct Compare<'r, 'f> {
    version: &'r str,
    /// The object whose default it is.
    top: Path,
    report: &'r mut Report<'f>,
}

impl Compare<'_, '_> {
    fn object(&mut self, default: &Value, schema: &Schema, at: &Path) {
        let Value::Object(fields) = default else { return };
        for (name, property) in schema.properties.iter() {
            let here = at.join(Step::Field(name.to_owned()));
            match (fields.get(name), property.default.as_deref()) {
                (Some(value), Some(own)) if !agree(value, own, property) => {
                    let (top, own, value) = (&self.top, shown(own), shown(value));
                    let message = format!("the default is {own}, but {value} if {top} is absent");
                    self.report.add(self.version, here.clone(), message);
                }
                (None, own) if requires(schema, name) => {
                    let hint = if own.is_some() { "; its own default is not counted" } else { "" };
                    let message = format!("the default lacks {name}, which is required{hint}");
                    self.report.add(self.version, at.clone(), message);
                }
                _ => {}
            }
            if let Some(value) = fields.get(name) {
                self.object(value, property, &here);
            }
        }
    }
}

/// Whether a value in an object's default is the result of the field's own default. Objects are compared by
/// their fields.
fn agree(value: &Value, own: &Value, schema: &Schema) -> bool {
    match (value, own) {
        (Value::Object(value), Value::Object(own)) => {
            let filled = |fields: &serde_json::Map<String, Value>| {
                let mut object = Value::Object(fields.clone());
                kube_structural_schema::compile::Compiled::new(schema).fill(&mut object);
                object
            };
            same(&filled(value), &filled(own))
        }
        _ => same(value, own),
    }
}
