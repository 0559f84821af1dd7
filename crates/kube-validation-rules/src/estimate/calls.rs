//! The estimated prices of CEL's own functions and operators.
//! It must not know those of Kubernetes, nor those of cel-go's extensions: both are asked first.
//!
//! Source: cel-go `checker/cost.go`, `functionCost`.

use super::coster::{Argument, Call, Coster, Entry};
use super::range::Range;
use super::units::{CHARACTER, search};
use super::{extensions, kubernetes};
use crate::tree::Id;

impl<'t, 'm> Coster<'t, 'm> {
    /// The price of one overload of a function, arguments included.
    pub(super) fn price(
        &mut self,
        id: Id,
        (function, overload): (&str, &str),
        target: Option<&Argument<'t, 'm>>,
        args: &[Argument<'t, 'm>],
        costs: &[Range],
    ) -> Call {
        let spent = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        let special = extensions::price(self, overload, target, args)
            .or_else(|| kubernetes::price(self, function, overload, target, args));
        if let Some(call) = special {
            return Call { cost: call.cost.plus(spent), ..call };
        }
        match (overload, costs) {
            ("logical_and" | "logical_or", [left, right]) => {
                let cost = Range { min: left.min, max: left.plus(*right).max };
                return Call { cost, size: None };
            }
            ("conditional", [condition, yes, no]) => {
                let size = size(&args[1]).union(size(&args[2]));
                let entry = Entry::union(self.entry(&args[1]), self.entry(&args[2]));
                self.set_entry(id, entry);
                return Call { cost: condition.plus(yes.union(*no)), size: Some(size) };
            }
            _ => {}
        }
        // cel-go priced `matches(text, pattern)` like any other call, before the release that came with 1.37.
        let unpriced = overload == "matches" && self.server_minor < 37;
        let call = text(overload, target, args)
            .filter(|_| !unpriced)
            .or_else(|| self.list_or_sum(id, overload, args));
        let call = call.unwrap_or(Call { cost: Range::fixed(1), size: None });
        Call { cost: call.cost.plus(spent), ..call }
    }

    fn entry(&self, argument: &Argument<'t, 'm>) -> Option<Entry> {
        argument.id.and_then(|id| self.entry_of(id))
    }

    fn list_or_sum(&mut self, id: Id, overload: &str, args: &[Argument<'t, 'm>]) -> Option<Call> {
        let [left, right] = args else { return None };
        match overload {
            "in_list" => Some(Call { cost: size(right).scaled(1.0), size: None }),
            "add_string" | "add_bytes" | "add_list" => {
                let sum = size(left).plus(size(right));
                let entry = Entry::union(self.entry(left), self.entry(right));
                self.set_entry(id, entry);
                let cost = if overload == "add_list" { Range::fixed(1) } else { sum.scaled(CHARACTER) };
                Some(Call { cost, size: Some(sum) })
            }
            _ => None,
        }
    }
}

/// The size of an argument as CEL knows it.
fn size(argument: &Argument<'_, '_>) -> Range {
    argument.size.unwrap_or(Range::UNKNOWN)
}

fn text<'t, 'm>(
    overload: &str,
    target: Option<&Argument<'t, 'm>>,
    args: &[Argument<'t, 'm>],
) -> Option<Call> {
    let plain = |cost| Some(Call { cost, size: None });
    match (overload, target, args) {
        ("string_format", Some(target), _) => plain(size(target).scaled(CHARACTER)),
        ("string_to_bytes", _, [text]) => {
            let from = size(text);
            // Upstream's product runs over.
            let bytes = Range { min: from.min, max: from.max.wrapping_mul(4) };
            Some(Call { cost: from.scaled(CHARACTER), size: Some(bytes) })
        }
        ("bytes_to_string", _, [bytes]) => {
            let from = size(bytes);
            let text = Range { min: from.min / 4, max: from.max };
            Some(Call { cost: from.scaled(CHARACTER), size: Some(text) })
        }
        ("strings_quote", _, [text]) => {
            let from = size(text);
            let quoted =
                Range { min: from.min.wrapping_add(2), max: from.max.wrapping_mul(2).wrapping_add(2) };
            Some(Call { cost: from.scaled(CHARACTER), size: Some(quoted) })
        }
        ("starts_with_string" | "ends_with_string", _, [part]) => plain(size(part).scaled(CHARACTER)),
        ("matches_string", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
            plain(search(size(text), size(pattern)))
        }
        ("contains_string", Some(text), [part]) => {
            plain(size(text).scaled(CHARACTER).times(size(part).scaled(CHARACTER)))
        }
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            _,
            [left, right],
        ) => {
            let max = size(left).max.min(size(right).max);
            plain(Range { min: max.min(1), max }.scaled(CHARACTER))
        }
        _ => None,
    }
}
