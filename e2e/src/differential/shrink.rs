//! Makes a failing case small: drops and simplifies parts of schema and object for as long as it keeps
//! failing.

use kube_structural_schema::json::Json;
use serde_json::Value;

use crate::conformance::Case;

/// One step to a part of a document.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// What may be done to a part.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Remove,
    /// Put one of its own parts in its place.
    Hoist(usize),
    Simplify,
}

/// The smallest case found that still fails, and how many cases were tried.
///
/// `failing` gets cases by the batch and returns which of them fail. No more than `tries` cases are tried.
///
/// # Errors
/// Those of `failing`.
pub(super) fn shrink<E>(
    case: &Case,
    tries: usize,
    mut failing: impl FnMut(&[Case]) -> Result<Vec<bool>, E>,
) -> Result<Case, E> {
    const BATCH: usize = 24;
    let mut smallest = case.clone();
    let mut tried = 0;
    loop {
        let mut progress = false;
        for part in [Part::Object, Part::Schema] {
            let mut from = 0;
            loop {
                // Cuts are listed again after each success: the largest parts come first.
                let cuts = cuts(part.of(&smallest));
                let batch: Vec<_> = cuts.iter().skip(from).take(BATCH).collect();
                if batch.is_empty() || tried >= tries {
                    break;
                }
                let candidates: Vec<_> =
                    batch.iter().map(|(path, cut)| part.cut(&smallest, path, *cut)).collect();
                tried += candidates.len();
                let verdicts = failing(&candidates)?;
                match candidates.into_iter().zip(verdicts).enumerate().find(|(_, (_, fails))| *fails) {
                    Some((offset, (candidate, _))) => {
                        smallest = candidate;
                        progress = true;
                        from += offset;
                    }
                    None => from += BATCH,
                }
            }
        }
        if !progress || tried >= tries {
            return Ok(smallest);
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Schema,
    Object,
}

impl Part {
    fn of(self, case: &Case) -> &Value {
        match self {
            Self::Schema => &case.schema,
            Self::Object => &case.object,
        }
    }

    fn cut(self, case: &Case, path: &[Step], cut: Cut) -> Case {
        let Case { op, schema, object } = case;
        let changed = |document: &Json| Json::from(apply(document, path, cut));
        match self {
            Self::Schema => Case { op: *op, schema: changed(schema), object: object.clone() },
            Self::Object => Case { op: *op, schema: schema.clone(), object: changed(object) },
        }
    }
}

/// Every cut of a document, those of the outermost parts first. The document itself stays.
fn cuts(document: &Value) -> Vec<(Vec<Step>, Cut)> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    list(document, &mut path, &mut found);
    found.sort_by_key(|(path, _)| path.len());
    found
}

fn list(value: &Value, path: &mut Vec<Step>, found: &mut Vec<(Vec<Step>, Cut)>) {
    let parts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    // Whole documents are objects and stay so.
    let hoisted = parts.iter().enumerate().filter(|(_, part)| !path.is_empty() || part.is_object());
    found.extend(hoisted.map(|(index, _)| (path.clone(), Cut::Hoist(index))));
    if !path.is_empty() {
        found.push((path.clone(), Cut::Remove));
        if simpler(value).is_some() {
            found.push((path.clone(), Cut::Simplify));
        }
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Index(index));
                list(item, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                path.push(Step::Key(key.clone()));
                list(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn simpler(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.chars().count() > 1 => {
            let half = text.chars().count() / 2;
            Some(text.chars().take(half).collect::<String>().into())
        }
        Value::Number(number) if number.as_f64().is_some_and(|number| number.abs() > 1.0) => Some(1.into()),
        _ => None,
    }
}

fn apply(document: &Value, path: &[Step], cut: Cut) -> Value {
    let Some((step, rest)) = path.split_first() else {
        return match (cut, document) {
            (Cut::Simplify, value) => simpler(value).unwrap_or_else(|| value.clone()),
            (Cut::Hoist(part), Value::Array(items)) => items.get(part).cloned().unwrap_or_default(),
            (Cut::Hoist(part), Value::Object(fields)) => {
                fields.values().nth(part).cloned().unwrap_or_default()
            }
            (_, value) => value.clone(),
        };
    };
    let removes = rest.is_empty() && matches!(cut, Cut::Remove);
    match (step, document) {
        (Step::Index(at), Value::Array(items)) => items
            .iter()
            .enumerate()
            .filter(|(index, _)| !(removes && index == at))
            .map(|(index, item)| if index == *at { apply(item, rest, cut) } else { item.clone() })
            .collect::<Vec<_>>()
            .into(),
        (Step::Key(at), Value::Object(fields)) => Value::Object(
            fields
                .iter()
                .filter(|(key, _)| !(removes && *key == at))
                .map(|(key, item)| {
                    (key.clone(), if key == at { apply(item, rest, cut) } else { item.clone() })
                })
                .collect(),
        ),
        (_, other) => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;
    use crate::conformance::Op;

    #[test]
    fn what_matters_is_left() {
        let case = Case {
            op: Op::Read,
            schema: json!({"type": "object", "properties": {"a": {"properties": {"b": {"default": "xyz"}}}, "c": {}}}).into(),
            object: json!({"a": {"b": [1, 2, {"d": 700}]}, "e": "long text"}).into(),
        };
        let mut asked = 0;
        let shrunk = shrink(&case, 10_000, |cases| {
            asked += cases.len();
            Ok::<_, Infallible>(
                cases
                    .iter()
                    .map(|case| {
                        let has = |document: &Json, text: &str| {
                            String::from_utf8_lossy(&document.to_vec()).contains(text)
                        };
                        has(&case.schema, "default") && has(&case.object, "\"d\"")
                    })
                    .collect(),
            )
        });
        let Ok(shrunk) = shrunk;
        assert_eq!(*shrunk.schema, json!({"default": "x"}));
        assert_eq!(*shrunk.object, json!({"d": 1}));
        assert!(asked < 500, "{asked}");
    }
}
