//! Regular expressions: `matches`, `find`, `findAll`.
//! Their syntax is in `pattern`.
//!
//! Source: apiserver `pkg/cel/library/regex.go` and cel-go `common/types/string.go`.

use super::args::{int, text};
use super::table::Table;
use crate::cost::{CHARACTER, REGEX_CHARACTER, scaled, size};
use crate::fault::{Fault, Outcome};
use crate::price::{Estimate, ONE, Price};
use crate::range::Range;
use crate::value::Value;
use go_text::regexp::Pattern;

/// What is done with a regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Matches,
    Find,
    FindAll,
}

impl Search {
    /// What an overload does, if it takes a regular expression, always as its second argument.
    pub(crate) fn of(overload: &str) -> Option<Self> {
        match overload {
            "matches" | "matches_string" => Some(Self::Matches),
            "string_find_string" => Some(Self::Find),
            "string_find_all_string" | "string_find_all_string_int" => Some(Self::FindAll),
            _ => None,
        }
    }

    /// Does it with an expression that was compiled before.
    pub(crate) fn run<'v>(self, pattern: &Pattern, args: &[Value<'v>]) -> Outcome<Value<'v>> {
        let text = text(args, 0)?;
        Ok(match self {
            Self::Matches => Value::Bool(pattern.matches(text)),
            Self::Find => {
                let found = pattern.find_iter(text).next().unwrap_or_default();
                Value::text(&text[found])
            }
            Self::FindAll => {
                let limit = if args.len() > 2 { int(args, 2)? } else { -1 };
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                Value::texts(pattern.find_iter(text).take(limit).map(|found| &text[found]))
            }
        })
    }
}

pub(super) fn declare(table: &mut Table) {
    table.function("matches", "matches", "string, string -> bool", MATCHES, |args| {
        search(args, Search::Matches)
    });
    table.method("matches", "matches_string", "string, string -> bool", MATCHES_METHOD, |args| {
        search(args, Search::Matches)
    });
    table.method("find", "string_find_string", "string, string -> string", FIND, |args| {
        search(args, Search::Find)
    });
    table.method("findAll", "string_find_all_string", "string, string -> list<string>", FIND, |args| {
        search(args, Search::FindAll)
    });
    table.method(
        "findAll",
        "string_find_all_string_int",
        "string, string, int -> list<string>",
        FIND,
        |args| search(args, Search::FindAll),
    );
}

/// A regular expression, the second argument, is matched with a text; even an empty text is looked at.
fn search_cost(args: &[Value<'_>]) -> u64 {
    scaled(1.0 + size(&args[0]) as f64, CHARACTER)
        .saturating_mul(scaled(size(&args[1]) as f64, REGEX_CHARACTER))
}

/// The estimate for a text and an expression of these sizes.
fn search_estimate(text: Range, pattern: Range) -> Range {
    text.plus(Range::fixed(1)).scaled(CHARACTER).times(pattern.scaled(REGEX_CHARACTER))
}

const MATCHES_METHOD: Price = Price::cel(
    |args, _| Ok(search_cost(args)),
    |call| Estimate::of(search_estimate(call.args[0].cel_size(), call.args[1].cel_size())),
);

/// cel-go priced `matches(text, pattern)` like any other call, before the release that came with 1.37.
const MATCHES: Price = Price {
    estimated: |call| match call.server_minor {
        ..37 => (ONE.estimated)(call),
        _ => (MATCHES_METHOD.estimated)(call),
    },
    ..MATCHES_METHOD
};

const FIND: Price = Price::kubernetes(
    |args, _| Ok(search_cost(args)),
    |call| {
        let text = call.args[0].size;
        let found = Range { min: 0, max: text.max };
        Estimate::sized(search_estimate(text, call.args[1].size), found)
    },
);

fn search<'v>(args: &[Value<'v>], search: Search) -> Outcome<Value<'v>> {
    let pattern = Pattern::new(text(args, 1)?).map_err(|error| match search {
        Search::Matches => Fault::quoting("the regular expression is malformed", error.to_string()),
        _ => Fault::quoting("Illegal regex", format!("Illegal regex: {error}")),
    })?;
    search.run(&pattern, args)
}
