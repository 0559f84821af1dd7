//! Fields that rules need.

use serde_json::{Value, json};

use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;
use kube_validation_rules::OwnRule;

/// Whether a rule of a schema may not hold without a field. `is_whole` is whether it is of a whole object.
pub(super) fn needs(schema: &Value, is_whole: bool, name: &str) -> bool {
    if schema.get("x-kubernetes-validations").is_none() {
        return false;
    }
    let Ok(schema) = Schema::parse(schema) else { return false };
    let path = Path::root().join(Step::Field(name.to_owned()));
    schema.rules.iter().any(|rule| {
        let compiled = OwnRule::with_readings(rule, &schema, is_whole, &[path.steps()]);
        let Some((own, mut readings)) = compiled.filter(|(own, _)| !own.is_transition()) else {
            return false;
        };
        let reading = readings.pop().flatten();
        reading.is_some_and(|reading| !reading.is_alone || own.holds(&json!({})) != Some(true))
    })
}
