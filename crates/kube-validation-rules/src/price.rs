//! What a call of a function costs: counted when it runs, and estimated when a CRD is written.
//! Each function names its price where it is declared; a price that only one function has is declared there,
//! too.
//!
//! Source: cel-go `interpreter/runtimecost.go` and `checker/cost.go`, apiserver `pkg/cel/library/cost.go`.

use super::cost::{CHARACTER, scaled, size, traversal};
use super::fault::Outcome;
use super::range::Range;
use super::types::Type;
use super::value::Value;

/// What one overload of a function costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// Where the types of the arguments leave no other overload.
    pub(crate) counted: Counted,
    /// Where they leave several.
    pub(crate) unresolved: Counted,
    /// The most it may cost, without what its arguments do.
    pub(crate) estimated: fn(&Given<'_>) -> Estimate,
    /// Whether the call goes through all pairs of elements, and what is counted depends on its arguments
    /// alone. Then it does not run where that is too much.
    pub(crate) of_pairs: bool,
}

/// What a call cost with these arguments, `null` for the ones that have no value, and this result. It is an
/// error if upstream cannot determine it.
pub(crate) type Counted = for<'v> fn(&[Value<'v>], &Outcome<Value<'v>>) -> Outcome<u64>;

/// The arguments of a call before it runs, for an estimate.
#[derive(Debug)]
pub(crate) struct Given<'m> {
    /// All arguments, first the one that a method is called on.
    pub(crate) args: Vec<Argument<'m>>,
    pub(crate) server_minor: u32,
}

/// An argument, for an estimate.
#[derive(Debug)]
pub(crate) struct Argument<'m> {
    pub(crate) ty: Type<'m>,
    /// The size that CEL knows, if any.
    pub(crate) known: Option<Range>,
    /// `known`, else the size by the schema, else any.
    pub(crate) size: Range,
    /// The first of what its type is made of, as a list is of items.
    pub(crate) item: Option<Item>,
    pub(crate) entry: Option<Entry>,
    /// The value of a literal of type `int`.
    pub(crate) literal: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) is_text: bool,
    pub(crate) size: Range,
}

/// The sizes of what a list or map holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) is_list: bool,
    pub(crate) key: Range,
    pub(crate) value: Range,
}

/// The estimated cost of a call, and the estimate of its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) cost: Range,
    pub(crate) size: Option<Range>,
    pub(crate) entry: Option<Entry>,
}

impl Price {
    /// A price of CEL, which counts one where several overloads are left.
    pub(crate) const fn cel(counted: Counted, estimated: fn(&Given<'_>) -> Estimate) -> Self {
        Self { counted, unresolved: |_, _| Ok(1), estimated, of_pairs: false }
    }

    /// A price of Kubernetes, which depends on the name of the function alone.
    pub(crate) const fn kubernetes(counted: Counted, estimated: fn(&Given<'_>) -> Estimate) -> Self {
        Self { counted, unresolved: counted, estimated, of_pairs: false }
    }

    /// The price of a call that goes through all pairs of elements.
    pub(crate) const fn of_pairs(self) -> Self {
        Self { of_pairs: true, ..self }
    }
}

impl Argument<'_> {
    /// The size that CEL knows, else anything.
    pub(crate) fn cel_size(&self) -> Range {
        self.known.unwrap_or(Range::UNKNOWN)
    }
}

impl Entry {
    pub(crate) fn union(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = (a?, b?);
        Some(Self { is_list: a.is_list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

impl Estimate {
    /// Of a call of whose result nothing is known.
    pub(crate) fn of(cost: Range) -> Self {
        Self { cost, size: None, entry: None }
    }

    pub(crate) fn sized(cost: Range, size: Range) -> Self {
        Self { size: Some(size), ..Self::of(cost) }
    }
}

/// The least there is.
pub(crate) const ONE: Price = Price::cel(|_, _| Ok(1), |_| Estimate::of(Range::fixed(1)));

/// A text is gone through, and gives one of its size.
pub(crate) const TEXT: Price = Price::kubernetes(
    |args, _| Ok(characters(&args[0], 1.0)),
    |call| Estimate::sized(call.args[0].size.scaled(CHARACTER), call.args[0].size),
);

/// A text is gone through, and gives a value of another type.
pub(crate) const PARSE: Price =
    Price { estimated: |call| Estimate::of(call.args[0].size.scaled(CHARACTER)), ..TEXT };

/// All of the first argument is gone through.
pub(crate) const TRAVERSAL: Price = Price::kubernetes(
    |args, _| Ok(traversal(&args[0])),
    |call| {
        let Argument { size, item, .. } = &call.args[0];
        Estimate::of(item.map_or(size.scaled(CHARACTER), |item| each(*size, item)))
    },
);

/// Two values are compared to the end of the shorter one.
pub(crate) const COMPARISON: Price = Price::cel(
    |args, _| Ok(scaled(size(&args[0]).min(size(&args[1])) as f64, CHARACTER)),
    |call| {
        let max = call.args[0].cel_size().max.min(call.args[1].cel_size().max);
        Estimate::of(Range { min: max.min(1), max }.scaled(CHARACTER))
    },
);

/// What so many times the characters of a text cost.
pub(crate) fn characters(text: &Value<'_>, times: f64) -> u64 {
    scaled(size(text) as f64 * times, CHARACTER)
}

/// What going through so many items costs.
pub(crate) fn each(count: Range, item: Item) -> Range {
    let mut one = Range::fixed(1);
    if item.is_text {
        one = one.plus(item.size.scaled(CHARACTER));
    }
    count.times(one)
}
