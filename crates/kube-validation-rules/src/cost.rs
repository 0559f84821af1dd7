//! What evaluation costs, in the units of the API server's budget, and how large values are to that.
//! Each function has its own `price`.
//!
//! Source: cel-go `interpreter/runtimecost.go` and `common/cost.go`.

use super::compare;
use super::fault::{Fault, Outcome};
use super::stop;
use super::value::Value;

/// What one expression may cost (`PerCallLimit`).
pub(super) const CALL_LIMIT: u64 = 1_000_000;

/// Reading a variable or field.
pub(super) const READ: u64 = 1;
/// Making a list or map, whatever its size.
pub(super) const NEW_LIST: u64 = 10;
pub(super) const NEW_MAP: u64 = 30;

/// A character of a text, and one of a regular expression.
pub(super) const CHARACTER: f64 = 0.1;
pub(super) const REGEX_CHARACTER: f64 = 0.25;

/// How many bytes the results of `+` may take together in one expression. The server counts one for lists and
/// for what has no type, however large they are.
const SUMS_LIMIT: usize = 64 << 20;

/// What has been spent on an expression.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) spent: u64,
    /// The bytes that the results of `+` take.
    sums: usize,
}

impl Meter {
    /// Spends.
    ///
    /// # Errors
    /// More was spent than an expression may, or it is to stop.
    pub(super) fn charge(&mut self, cost: u64) -> Outcome<()> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > CALL_LIMIT { Err(Fault::TooExpensive) } else { stop::go_on() }
    }

    /// Counts what a result of `+` takes.
    ///
    /// # Errors
    /// It is more than an expression may take.
    pub(super) fn hold(&mut self, sum: &Value<'_>) -> Outcome<()> {
        let bytes = match sum {
            Value::List(list) => list.items.len().saturating_mul(size_of::<Value<'_>>()),
            Value::String(text) => text.as_str().len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.sums = self.sums.saturating_add(bytes);
        if self.sums > SUMS_LIMIT { Err(Fault::TooExpensive) } else { Ok(()) }
    }

    /// Whether so much may be spent.
    pub(super) fn affords(&self, cost: u64) -> bool {
        self.spent.saturating_add(cost) <= CALL_LIMIT
    }

    /// Spends on a value, or on finding that there is none. What ended the expression costs nothing more.
    pub(super) fn charge_for<T>(&mut self, cost: u64, value: Outcome<T>) -> Outcome<T> {
        if !matches!(&value, Err(fault) if fault.is_final()) {
            self.charge(cost)?;
        }
        value
    }
}

/// So many times as much, rounded up.
pub(super) fn scaled(count: f64, factor: f64) -> u64 {
    (count * factor).ceil() as u64
}

/// The size of a value; of what has none, 1.
pub(super) fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Kind(kind) => kind.size(),
        Value::Optional(Some(value)) => size(value),
        other => other.size().map_or(1, |size| size as u64),
    }
}

/// What going through all of a value costs.
pub(super) fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.as_str().len() as f64 * CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Value::List(_) | Value::Array(_) => compare::items(value).map_or(0, |items| {
            items.map(|item| item.as_ref().map_or(1, traversal)).fold(0, u64::saturating_add)
        }),
        Value::Map(map) => map
            .iter()
            .map(|(key, value)| traversal(&key.to_value()).saturating_add(traversal(value)))
            .fold(0, u64::saturating_add),
        Value::Object(object) => object
            .keys()
            .map(|key| {
                let value = object.find(&key).ok().flatten();
                traversal(&key).saturating_add(value.as_ref().map_or(1, traversal))
            })
            .fold(0, u64::saturating_add),
        _ => 1,
    }
}
