//! What evaluation costs, in the units of the API server's budget.
//! It must not be an estimate from above: this counts what was done.
//!
//! Source: cel-go `interpreter/runtimecost.go`, `ext/{lists,sets}.go` and apiserver
//! `pkg/cel/library/cost.go`.

use std::borrow::Cow;

use super::compare;
use super::fault::{Fault, Outcome};
use super::kind::downcast;
use super::kinds::NamedFormat;
use super::value::Value;

/// What one expression may cost (`PerCallLimit`).
pub(super) const CALL_LIMIT: u64 = 1_000_000;

/// Reading a variable or field.
pub(super) const READ: u64 = 1;
/// Making a list or map, whatever its size.
pub(super) const NEW_LIST: u64 = 10;
pub(super) const NEW_MAP: u64 = 30;

/// A character of a text, and one of a regular expression.
const CHARACTER: f64 = 0.1;
const REGEX_CHARACTER: f64 = 0.25;

/// What has been spent on an expression.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) spent: u64,
}

/// How the cost of a call depends on its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Price {
    One,
    /// The whole of the first argument is gone through.
    Traversal,
    /// So many times the characters of the first argument.
    First(u8),
    Second,
    /// The characters of the result, twice.
    Result,
    /// One for each item of the second argument.
    Items,
    /// The characters of the smaller argument.
    Smaller,
    /// The characters of both.
    Both,
    /// Each part of the second argument at each of the first.
    Product,
    /// A regular expression, the second argument, on a text.
    Search,
    /// A named format, the first argument, on a text.
    Format,
    /// Bits of an address, and the text that it has to be read from.
    Address {
        text: bool,
    },
    Block {
        text: bool,
    },
    /// Every item of one list with every one of another, so many times.
    Sets(u8),
    NewList,
    Flatten,
    /// Every item of this argument with every other.
    Sort(u8),
}

impl Meter {
    /// Spends.
    ///
    /// # Errors
    /// More was spent than an expression may.
    pub(super) fn charge(&mut self, cost: u64) -> Outcome<()> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > CALL_LIMIT { Err(Fault::TooExpensive) } else { Ok(()) }
    }

    /// Spends on a value, or on finding that there is none. What ended the expression costs no more.
    pub(super) fn charge_for<T>(&mut self, cost: u64, value: Outcome<T>) -> Outcome<T> {
        if !matches!(&value, Err(fault) if fault.is_final()) {
            self.charge(cost)?;
        }
        value
    }
}

impl Price {
    /// The price of a call. The overload is known only where the types of the arguments left one.
    pub(super) fn of(function: &str, overload: Option<&str>) -> Self {
        let overload = overload.unwrap_or_default();
        if let Some(price) = Self::of_sequence(overload) {
            return price;
        }
        match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => Self::Traversal,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => Self::First(1),
            "replace" | "split" | "ip.isCanonical" => Self::First(2),
            "join" => Self::Result,
            "find" | "findAll" => Self::Search,
            "ip" if overload == "cidr_ip" => Self::One,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Self::First(1)
            }
            "containsIP" => Self::Address { text: overload == "cidr_contains_ip_string" },
            "containsCIDR" => Self::Block { text: overload == "cidr_contains_cidr_string" },
            "validate" => Self::Format,
            _ => Self::of_overload(overload),
        }
    }

    fn of_sequence(overload: &str) -> Option<Self> {
        Some(match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => Self::Sets(1),
            "list_sets_equivalent_list" => Self::Sets(2),
            "list_slice" | "lists_range" | "list_reverse" => Self::NewList,
            "list_flatten" | "list_flatten_int" => Self::Flatten,
            "list_distinct" => Self::Sort(0),
            id if id.ends_with("_sortByAssociatedKeys") => Self::Sort(1),
            id if id.starts_with("list_") && id.ends_with("_sort") => Self::Sort(0),
            _ => return None,
        })
    }

    fn of_overload(overload: &str) -> Self {
        match overload {
            "starts_with_string" | "ends_with_string" => Self::Second,
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => Self::First(1),
            "in_list" => Self::Items,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => Self::Smaller,
            "add_string" | "add_bytes" => Self::Both,
            "matches" | "matches_string" => Self::Search,
            "contains_string" => Self::Product,
            _ => Self::One,
        }
    }

    /// What a call costs with these arguments, `null` for the ones that have no value, and this result.
    ///
    /// # Errors
    /// Upstream cannot tell.
    pub(super) fn cost(self, args: &[Value<'_>], result: &Outcome<Value<'_>>) -> Outcome<u64> {
        match self {
            Self::Flatten if args.len() > 1 && !matches!(args[1], Value::Int(_)) => {
                let given = match &args[1] {
                    Value::Null => "*types.Err",
                    other => other.go_type(),
                };
                let panic = format!("interface conversion: ref.Val is {given}, not types.Int");
                Err(Fault::Internal(panic.into()))
            }
            Self::Sort(index) => args.get(usize::from(index)).map_or(Ok(1), sorting),
            _ => Ok(self.sized_cost(args, result)),
        }
    }

    fn sized_cost(self, args: &[Value<'_>], result: &Outcome<Value<'_>>) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, size);
        let characters = |count: u64| scaled(count as f64, CHARACTER);
        match self {
            Self::One | Self::Sort(_) => 1,
            Self::Traversal => args.first().map_or(0, traversal),
            Self::First(times) => scaled(size(0) as f64 * f64::from(times), CHARACTER),
            Self::Second => characters(size(1)),
            Self::Result => scaled(result.as_ref().map_or(1, self::size) as f64 * 2.0, CHARACTER),
            Self::Items => size(1),
            Self::Smaller => characters(size(0).min(size(1))),
            Self::Both => characters(size(0).saturating_add(size(1))),
            Self::Product => characters(size(0)).saturating_mul(characters(size(1))),
            Self::Search => scaled(1.0 + size(0) as f64, CHARACTER)
                .saturating_mul(scaled(size(1) as f64, REGEX_CHARACTER)),
            Self::Format => match args.first() {
                Some(Value::Kind(kind)) => downcast::<NamedFormat>(&**kind).map_or(1, |format| {
                    scaled(1.0 + size(1) as f64, CHARACTER)
                        .saturating_mul(scaled(format.regex_size as f64, REGEX_CHARACTER))
                }),
                _ => 1,
            },
            Self::Address { text } => characters(size(0) * 2) + if text { characters(size(1)) } else { 0 },
            Self::Block { text } => {
                characters(size(0) * 2) + characters(size(0)) + 1 + if text { characters(size(1)) } else { 0 }
            }
            Self::Sets(times) => {
                1_u64.saturating_add((size(0).saturating_mul(size(1)) as f64 * f64::from(times)) as u64)
            }
            Self::NewList => new_list(result.as_ref().map_or(1, self::size), 1.0),
            Self::Flatten => new_list(
                size(0),
                match args.get(1) {
                    Some(Value::Int(depth)) => *depth as f64,
                    _ => 1.0,
                },
            ),
        }
    }
}

/// The price of `==` and `!=`. Of Kubernetes' own types `==` costs the least there is.
pub(super) fn equality(negated: bool, a: &Value<'_>, b: &Value<'_>) -> u64 {
    if matches!(a, Value::Kind(_)) && !negated {
        return 1;
    }
    scaled(size(a).min(size(b)) as f64, CHARACTER)
}

fn scaled(count: f64, factor: f64) -> u64 {
    (count * factor).ceil() as u64
}

fn new_list(size: u64, factor: f64) -> u64 {
    let factor = if factor < 0.0 { 1.0 } else { factor };
    ((size as f64 * factor) as u64).saturating_add(1 + NEW_LIST)
}

const NO_LIST: Fault = Fault::Internal(Cow::Borrowed(
    "interface conversion: *types.Err is not traits.Lister: missing method Add",
));

fn sorting(list: &Value<'_>) -> Outcome<u64> {
    let size = size(list);
    let first = compare::items(list).map_err(|_| NO_LIST)?.next();
    let factor = match first {
        Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.0 + CHARACTER,
        _ => 2.0,
    };
    Ok(new_list(size.saturating_mul(size), factor))
}

/// The size of a value; of what has none, 1.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Kind(kind) => kind.size(),
        Value::Optional(Some(value)) => size(value),
        other => other.size().map_or(1, |size| size as u64),
    }
}

/// What going through all of a value costs.
fn traversal(value: &Value<'_>) -> u64 {
    kube_structural_schema::json::level(|| match value {
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
    })
}
