//! Named formats: `format.dns1123Label().validate(x)` and its like.
//! What they require of a text is in `kinds`.
//!
//! Source: apiserver `pkg/cel/library/format.go`.

use super::args::{kind, text};
use super::table::Table;
use crate::cost::{CHARACTER, REGEX_CHARACTER, scaled, size};
use crate::fault::Outcome;
use crate::kinds::{FORMATS, NamedFormat};
use crate::price::{Estimate, ONE, Price};
use crate::value::Value;

/// The longest regular expression behind a format, in characters.
const MAX_REGEX: f64 = 128.0;

pub(super) fn declare(table: &mut Table) {
    table.method(
        "validate",
        "format-validate",
        "format, string -> optional<list<string>>",
        VALIDATE,
        |args| {
            let wrong = kind::<NamedFormat>(args, 0)?.problems(text(args, 1)?);
            Ok(if wrong.is_empty() { Value::Optional(None) } else { Value::some(Value::texts(wrong)) })
        },
    );
    table.function("format.named", "format-named", "string -> optional<format>", ONE, |args| {
        let name = text(args, 0)?;
        Ok(match FORMATS.iter().find(|(known, _)| *known == name) {
            Some((_, format)) => Value::some(Value::kind(*format)),
            None => Value::Optional(None),
        })
    });
    declare_constants(table);
}

/// The regular expression behind the format is matched with the text.
const VALIDATE: Price = Price::kubernetes(
    |args, _| {
        let regex_size = kind::<NamedFormat>(args, 0).map(|format| format.regex_size as f64);
        Ok(regex_size.map_or(1, |regex_size| {
            scaled(1.0 + size(&args[1]) as f64, CHARACTER).saturating_mul(scaled(regex_size, REGEX_CHARACTER))
        }))
    },
    |call| Estimate::of(call.args[1].size.scaled(CHARACTER).scaled(MAX_REGEX * REGEX_CHARACTER)),
);

/// `format.dns1123Label()` and so on: functions of no arguments.
fn declare_constants(table: &mut Table) {
    macro_rules! constants {
        ($($index:literal => $name:literal),* $(,)?) => {
            $(table.function($name, $name, "-> format", ONE, |_| constant($index));)*
        };
    }
    constants! {
        0 => "format.dns1123Label",
        1 => "format.dns1123Subdomain",
        2 => "format.dns1035Label",
        3 => "format.qualifiedName",
        4 => "format.dns1123LabelPrefix",
        5 => "format.dns1123SubdomainPrefix",
        6 => "format.dns1035LabelPrefix",
        7 => "format.labelValue",
        8 => "format.uri",
        9 => "format.uuid",
        10 => "format.byte",
        11 => "format.date",
        12 => "format.datetime",
    }
}

fn constant<'v>(index: usize) -> Outcome<Value<'v>> {
    Ok(Value::kind(FORMATS[index].1))
}
