//! Functions on texts, by code points.
//! `formatting` formats values.
//!
//! Source: cel-go `ext/strings.go`, version 2, and `common/types/string.go`.

use super::args::{count, int, position, text};
use super::table::Table;
use crate::compare;
use crate::cost::{CHARACTER, scaled, size};
use crate::fault::{Fault, Outcome};
use crate::price::{Estimate, ONE, Price, TEXT, TRAVERSAL, characters};
use crate::range::Range;
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.method("contains", "contains_string", "string, string -> bool", CONTAINS, |args| {
        Ok(Value::Bool(text(args, 0)?.contains(text(args, 1)?)))
    });
    table.method("endsWith", "ends_with_string", "string, string -> bool", AFFIX, |args| {
        Ok(Value::Bool(text(args, 0)?.ends_with(text(args, 1)?)))
    });
    table.method("startsWith", "starts_with_string", "string, string -> bool", AFFIX, |args| {
        Ok(Value::Bool(text(args, 0)?.starts_with(text(args, 1)?)))
    });
    table.method("charAt", "string_char_at_int", "string, int -> string", ONE, char_at);
    table.method("indexOf", "string_index_of_string", "string, string -> int", TRAVERSAL, |args| {
        index_of(text(args, 0)?, text(args, 1)?, 0)
    });
    table.method("indexOf", "string_index_of_string_int", "string, string, int -> int", TRAVERSAL, |args| {
        index_of(text(args, 0)?, text(args, 1)?, int(args, 2)?)
    });
    table.method("lastIndexOf", "string_last_index_of_string", "string, string -> int", TRAVERSAL, |args| {
        let (haystack, needle) = (text(args, 0)?, text(args, 1)?);
        let len = haystack.chars().count();
        if needle.is_empty() {
            return Ok(count(len));
        }
        if haystack.len() < needle.len() {
            return Ok(Value::Int(-1));
        }
        last_index_of(haystack, needle, i64::try_from(len).unwrap_or(i64::MAX) - 1)
    });
    table.method(
        "lastIndexOf",
        "string_last_index_of_string_int",
        "string, string, int -> int",
        TRAVERSAL,
        |args| last_index_of(text(args, 0)?, text(args, 1)?, int(args, 2)?),
    );
    table.method("lowerAscii", "string_lower_ascii", "string -> string", TEXT, |args| {
        Ok(Value::text(text(args, 0)?.to_ascii_lowercase()))
    });
    table.method("upperAscii", "string_upper_ascii", "string -> string", TEXT, |args| {
        Ok(Value::text(text(args, 0)?.to_ascii_uppercase()))
    });
    table.method(
        "replace",
        "string_replace_string_string",
        "string, string, string -> string",
        REPLACE,
        |args| Ok(Value::text(text(args, 0)?.replace(text(args, 1)?, text(args, 2)?))),
    );
    table.method(
        "replace",
        "string_replace_string_string_int",
        "string, string, string, int -> string",
        REPLACE,
        |args| {
            let (text, from, to) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
            Ok(Value::text(match usize::try_from(int(args, 3)?) {
                Ok(times) => text.replacen(from, to, times),
                Err(_) => text.replace(from, to),
            }))
        },
    );
    table.method("split", "string_split_string", "string, string -> list<string>", SPLIT, |args| {
        Ok(split(text(args, 0)?, text(args, 1)?, -1))
    });
    table.method("split", "string_split_string_int", "string, string, int -> list<string>", SPLIT, |args| {
        Ok(split(text(args, 0)?, text(args, 1)?, int(args, 2)?))
    });
    table.method("substring", "string_substring_int", "string, int -> string", TEXT, |args| {
        let text = text(args, 0)?;
        substring(text, int(args, 1)?, None)
    });
    table.method("substring", "string_substring_int_int", "string, int, int -> string", TEXT, |args| {
        let text = text(args, 0)?;
        substring(text, int(args, 1)?, Some(int(args, 2)?))
    });
    table.method("trim", "string_trim", "string -> string", TEXT, |args| {
        // Go's `unicode.IsSpace` and Rust's `White_Space` are the same characters.
        Ok(Value::text(text(args, 0)?.trim()))
    });
    table.function("strings.quote", "strings_quote", "string -> string", QUOTE, |args| {
        Ok(Value::text(quote(text(args, 0)?)))
    });
    table.method("join", "list_join", "list<string> -> string", JOIN, |args| join(&args[0], ""));
    table.method("join", "list_join_string", "list<string>, string -> string", JOIN, |args| {
        join(&args[0], text(args, 1)?)
    });
}

/// Each part of the second text at each of the first.
const CONTAINS: Price = Price::cel(
    |args, _| Ok(characters(&args[0], 1.0).saturating_mul(characters(&args[1], 1.0))),
    |call| {
        let [text, part] = [0, 1].map(|index: usize| call.args[index].cel_size().scaled(CHARACTER));
        Estimate::of(text.times(part))
    },
);

const AFFIX: Price = Price::cel(
    |args, _| Ok(characters(&args[1], 1.0)),
    |call| Estimate::of(call.args[1].cel_size().scaled(CHARACTER)),
);

const QUOTE: Price = Price::cel(
    |args, _| Ok(characters(&args[0], 1.0)),
    |call| {
        let from = call.args[0].cel_size();
        let quoted = Range { min: from.min.wrapping_add(2), max: from.max.wrapping_mul(2).wrapping_add(2) };
        Estimate::sized(from.scaled(CHARACTER), quoted)
    },
);

const REPLACE: Price = Price::kubernetes(
    |args, _| Ok(characters(&args[0], 2.0)),
    |call| {
        let [text, old, new] = [0, 1, 2].map(|index: usize| call.args[index].size);
        let (mut count, mut kept) = (Range::default(), Range::default());
        if old.min == 0 {
            count.max = text.max.saturating_add(1);
            kept.max = text.max;
        } else if new.max <= old.min {
            kept.max = text.max;
        } else {
            count.max = (text.max as f64 / old.min as f64).ceil() as u64;
        }
        if old.max == 0 {
            count.min = text.min.saturating_add(1);
            kept.min = text.min;
        } else if old.max <= new.min {
            kept.min = text.min;
        } else {
            count.min = (text.min as f64 / old.max as f64).ceil() as u64;
        }
        Estimate::sized(text.scaled(2.0 * CHARACTER), count.times(new).plus(kept))
    },
);

const SPLIT: Price = Price {
    estimated: |call| {
        let text = call.args[0].size;
        let limit = call.args.get(2).and_then(|limit| limit.literal).map(i64::cast_unsigned);
        Estimate::sized(text.scaled(2.0 * CHARACTER), Range { min: 0, max: limit.unwrap_or(text.max) })
    },
    ..REPLACE
};

const JOIN: Price = Price::kubernetes(
    |_, result| Ok(scaled(result.as_ref().map_or(1, size) as f64 * 2.0, CHARACTER)),
    |call| {
        let list = &call.args[0];
        let mut size = list.item.map_or(Range::default(), |item| list.size.times(item.size));
        if let Some(separator) = call.args.get(1) {
            let less = |count: u64| count.saturating_sub(1);
            let between = Range { min: less(list.size.min), max: less(list.size.max) };
            size = size.plus(separator.size.times(between));
        }
        Estimate::sized(size.scaled(CHARACTER), size)
    },
);

fn out_of_range(index: i64) -> Fault {
    Fault::new(format!("index out of range: {index}"))
}

fn char_at<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let (text, index) = (text(args, 0)?, int(args, 1)?);
    let len = text.chars().count();
    match usize::try_from(index) {
        Ok(at) if at <= len => Ok(Value::text(text.chars().nth(at).map(String::from).unwrap_or_default())),
        _ => Err(out_of_range(index)),
    }
}

fn index_of<'v>(haystack: &str, needle: &str, offset: i64) -> Outcome<Value<'v>> {
    let start = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let len = haystack.chars().count();
    if needle.is_empty() {
        return Ok(count(start.min(len)));
    }
    let Some(from) = byte_at(haystack, start) else { return Ok(Value::Int(-1)) };
    Ok(match haystack[from..].find(needle) {
        Some(at) => count(haystack[..from + at].chars().count()),
        None => Value::Int(-1),
    })
}

fn last_index_of<'v>(haystack: &str, needle: &str, offset: i64) -> Outcome<Value<'v>> {
    let last = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let len = haystack.chars().count();
    if needle.is_empty() {
        return Ok(count(last.min(len)));
    }
    if last >= len {
        return Ok(Value::Int(-1));
    }
    // A match may begin at `last` at the latest, so it ends that many bytes later.
    let from = byte_at(haystack, last).unwrap_or(haystack.len());
    let mut end = (from + needle.len()).min(haystack.len());
    while !haystack.is_char_boundary(end) {
        end += 1;
    }
    Ok(match haystack[..end].rmatch_indices(needle).find(|(at, _)| *at <= from) {
        Some((at, _)) => count(haystack[..at].chars().count()),
        None => Value::Int(-1),
    })
}

/// The byte at which a code point begins.
fn byte_at(text: &str, index: usize) -> Option<usize> {
    text.char_indices().nth(index).map(|(at, _)| at)
}

fn substring<'v>(text: &str, start: i64, end: Option<i64>) -> Outcome<Value<'v>> {
    let len = text.chars().count();
    if let Some(end) = end
        && start > end
    {
        return Err(Fault::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let within = |index: i64| position(index).ok().filter(|at| *at <= len).ok_or(out_of_range(index));
    let from = within(start)?;
    let to = end.map_or(Ok(len), within)?;
    Ok(Value::text(text.chars().skip(from).take(to - from).collect::<String>()))
}

/// Go's `strings.SplitN`: at an empty separator between all characters, into `limit` parts at most unless it
/// is negative.
fn split<'v>(text: &str, separator: &str, limit: i64) -> Value<'v> {
    let Ok(limit) = usize::try_from(limit) else {
        return match separator {
            "" => Value::texts(text.chars().map(String::from)),
            _ => Value::texts(text.split(separator)),
        };
    };
    if limit == 0 {
        return Value::list(Vec::new());
    }
    if !separator.is_empty() {
        return Value::texts(text.splitn(limit, separator));
    }
    match byte_at(text, limit - 1) {
        Some(at) => Value::texts(text[..at].chars().map(String::from).chain([text[at..].to_owned()])),
        None => Value::texts(text.chars().map(String::from)),
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn join<'v>(list: &Value<'v>, separator: &str) -> Outcome<Value<'v>> {
    let mut joined = String::new();
    for (index, item) in compare::items(list)?.enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        match item? {
            Value::String(text) => joined.push_str(text.as_str()),
            other => {
                return Err(Fault::quoting(
                    "join: invalid input",
                    format!("join: invalid input: {}", other.shown()),
                ));
            }
        }
    }
    Ok(Value::text(joined))
}
