//! How large the values of a schema can be: the estimate of a rule's cost depends on it.
//! `model` reads the schemas.
//!
//! Source: apiserver `pkg/cel/common/schemas.go` (`SchemaDeclType`) and `pkg/cel/limits.go`.

/// The largest request that the server takes, in bytes.
const MAX_REQUEST: i64 = 3 << 20;

/// The longest texts of duration and date-time, and of date, with their quotes, in bytes.
const MAX_TIME: i64 = 32;
const DATE: i64 = 12;

/// The sizes of a node's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The most characters, items or entries; 0 for what has no size, objects with named fields among them.
    pub(super) elements: u64,
    /// The fewest bytes of JSON.
    pub(super) bytes: i64,
    /// Whether there is a limit on the elements, other than that of requests.
    pub(super) is_limited: bool,
}

impl Extent {
    /// Of a value of which nothing is known.
    pub(super) const UNKNOWN: Self = Self { elements: 0, bytes: 1, is_limited: false };
    pub(super) const BOOL: Self = Self::of(0, 4);
    pub(super) const NUMBER: Self = Self::of(0, 1);
    pub(super) const DURATION: Self = Self::of(MAX_TIME, 3);
    pub(super) const DATE: Self = Self::of(DATE, DATE);
    pub(super) const DATE_TIME: Self = Self::of(MAX_TIME, 21);

    const fn of(elements: i64, bytes: i64) -> Self {
        let elements = if elements < 0 { 0 } else { elements.cast_unsigned() };
        Self { elements, bytes, is_limited: true }
    }

    /// Of a text with at most so many code points, each of up to four bytes.
    pub(super) fn of_text(max_length: Option<i64>) -> Self {
        let elements = max_length.map_or(MAX_REQUEST - 2, |max| max.max(0).wrapping_mul(4));
        // Upstream's product wraps around, and is read without its sign.
        Self { elements: elements.cast_unsigned(), bytes: 2, is_limited: max_length.is_some() }
    }

    /// Of bytes in base64.
    pub(super) fn of_bytes(max_length: Option<i64>) -> Self {
        Self { is_limited: max_length.is_some(), ..Self::of(max_length.unwrap_or(MAX_REQUEST - 2), 2) }
    }

    /// Of a text that is one of these.
    pub(super) fn of_enum<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        Self::of(values.map(str::len).max().unwrap_or(0) as i64, 2)
    }

    /// Of an integer or a text.
    pub(super) fn of_int_or_string(max_length: Option<i64>) -> Self {
        Self { bytes: 1, ..Self::of_text(max_length) }
    }

    /// Of a list.
    pub(super) fn of_list(item: Self, max_items: Option<i64>) -> Self {
        let most = max_items.unwrap_or((MAX_REQUEST - 2) / (item.bytes + 1));
        Self { is_limited: max_items.is_some(), ..Self::of(most, 2) }
    }

    /// Of a map.
    pub(super) fn of_map(value: Self, max_properties: Option<i64>) -> Self {
        let most = max_properties.unwrap_or((MAX_REQUEST - 2) / (value.bytes + 6));
        Self { is_limited: max_properties.is_some(), ..Self::of(most, 2) }
    }

    /// Of an object that always has these fields.
    pub(super) fn of_object<'n>(required: impl Iterator<Item = (&'n str, Self)>) -> Self {
        Self::of(0, 2 + required.map(|(name, field)| name.len() as i64 + field.bytes + 4).sum::<i64>())
    }

    /// How often such a value can be there at most in one request, as if it were an item of a list.
    pub(super) fn max_cardinality(self) -> u64 {
        (MAX_REQUEST / (self.bytes + 1)).cast_unsigned()
    }
}
