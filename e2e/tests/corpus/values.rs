//! What has to stay the same.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Every value that objects had is there still; defaults that were stored stay where the upgrade is taken
/// back.
pub(crate) fn all_kept(before: &[Value], now: &[Value]) -> Result<()> {
    for (before, now) in before.iter().zip(now) {
        all_of(before, now).with_context(|| before["metadata"]["name"].to_string())?;
    }
    Ok(())
}

/// Every value of an object is in another.
pub(crate) fn all_of(object: &Value, other: &Value) -> Result<()> {
    ["spec", "status"].iter().try_for_each(|part| kept(&object[part], &other[part], part))
}

fn kept(before: &Value, now: &Value, path: &str) -> Result<()> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => before.iter().try_for_each(|(name, value)| {
            kept(value, now.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
        }),
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            before.iter().zip(now).try_for_each(|(before, now)| kept(before, now, &format!("{path}[]")))
        }
        _ => {
            ensure!(before == now || before.is_null(), "{path} was {before} and is {now}");
            Ok(())
        }
    }
}

/// Every value that was there and still has a place has not changed; every owner owns what it owned.
pub(crate) fn nothing_changed(before: &Value, now: &Value) -> Result<()> {
    for part in ["spec", "status"] {
        same_values(&before[part], &now[part], part)?;
    }
    let owners = |object: &Value| -> Vec<(Value, Value, Value)> {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries
            .map(|entry| (entry["manager"].clone(), entry["operation"].clone(), entry["fieldsV1"].clone()))
            .collect()
    };
    ensure!(owners(before) == owners(now), "owners changed:\n{:?}\n{:?}", owners(before), owners(now));
    Ok(())
}

fn same_values(before: &Value, now: &Value, path: &str) -> Result<()> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            // What the new schema does not know is pruned by every read.
            for (name, value) in before.iter().filter(|(name, _)| now.contains_key(*name)) {
                same_values(value, &now[name], &format!("{path}.{name}"))?;
            }
            Ok(())
        }
        (Value::Array(before), Value::Array(now)) => {
            ensure!(before.len() == now.len(), "{path} has another length");
            before
                .iter()
                .zip(now)
                .try_for_each(|(before, now)| same_values(before, now, &format!("{path}[]")))
        }
        _ => {
            ensure!(before == now || before.is_null(), "{path} changed");
            Ok(())
        }
    }
}
