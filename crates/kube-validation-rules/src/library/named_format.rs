//! Named formats: `format.dns1123Label().validate(x)` and its like.
//! It must not know what they ask of a text; that is in `kinds`.
//!
//! Source: apiserver `pkg/cel/library/format.go`.

use super::args::{kind, text};
use super::table::Table;
use crate::fault::Outcome;
use crate::kinds::{FORMATS, NamedFormat};
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.method("validate", "format-validate", "format, string -> optional<list<string>>", |args| {
        let wrong = kind::<NamedFormat>(args, 0)?.problems(text(args, 1)?);
        Ok(if wrong.is_empty() { Value::Optional(None) } else { Value::some(Value::texts(wrong)) })
    });
    table.function("format.named", "format-named", "string -> optional<format>", |args| {
        let name = text(args, 0)?;
        Ok(match FORMATS.iter().find(|(known, _)| *known == name) {
            Some((_, format)) => Value::some(Value::kind(*format)),
            None => Value::Optional(None),
        })
    });
    declare_constants(table);
}

/// `format.dns1123Label()` and so on: functions of no arguments.
fn declare_constants(table: &mut Table) {
    macro_rules! constants {
        ($($index:literal => $name:literal),* $(,)?) => {
            $(table.function($name, $name, "-> format", |_| constant($index));)*
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
