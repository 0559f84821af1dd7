//! Where in an object defaults apply.
//! It must not judge what stands there.

use serde_json::Value;

use crate::domain::crd::Crd;
use crate::domain::defaults::Node;
use crate::domain::json::level;
use crate::domain::path::{Path, Trail, TrailStep};

/// All places of an object at which a default of the storage version applies: where it is present, and where it is absent and
/// its parent is there. Below a place that is absent there is none.
pub fn places(object: &Value, crd: &Crd) -> Vec<Path> {
    let mut found = Vec::new();
    below(object, crd.compiled().root(), &Trail::ROOT, &mut found);
    found.sort();
    found
}

fn below(value: &Value, node: &Node, at: &Trail<'_>, found: &mut Vec<Path>) {
    match value {
        Value::Object(fields) => level(|| {
            for (name, property) in &node.properties {
                let at = at.join(TrailStep::Field(name));
                if property.default.is_some() {
                    found.push(at.to_path());
                }
                if let Some(value) = fields.get(name.as_ref()) {
                    below(value, property, &at, found);
                }
            }
            if let Some(values) = &node.values {
                for (name, value) in fields.iter().filter(|(name, _)| node.property(name).is_none()) {
                    below(value, values, &at.join(TrailStep::Key(name)), found);
                }
            }
        }),
        Value::Array(items) => level(|| {
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    below(item, node, &at.join(TrailStep::Index(index)), found);
                }
            }
        }),
        _ => {}
    }
}
