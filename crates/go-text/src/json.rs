//! `json.Marshal` of decoded JSON, as Go's `encoding/json` writes it.
//! For wording, and where upstream compares by text.

use std::fmt::Write as _;

use serde_json::Value;

use super::number::Num;
use super::strconv::{format_plain, format_scientific};

/// `json.Marshal` of a decoded JSON value. Equal values that Go holds as integer and float are written alike.
pub fn marshal(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => text.push_str(&int.to_string()),
            Num::Float(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => {
                text.push_str(&format_scientific(float));
            }
            Num::Float(float) => text.push_str(&format_plain(float)),
        },
        Value::String(string) => write_json_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json_string(key, text);
                text.push(':');
                write_json(field, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn write_json_string(string: &str, text: &mut String) {
    for letter in Value::from(string).to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_in_go() {
        let document = json!({"b": [1, "x y", null], "a": {"<": true, "k": 2.0}});
        assert_eq!(marshal(&document), r#"{"a":{"\u003c":true,"k":2},"b":[1,"x y",null]}"#);
    }
}
