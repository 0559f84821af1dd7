//! `%v` of decoded JSON, as Go's `fmt` prints it.
//! It must only be used for wording.

use serde_json::Value;

use super::number::Num;
use super::strconv::format_float;

/// `%v` of a decoded JSON value.
pub fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => text.push_str(&int.to_string()),
            Num::Float(number) => text.push_str(&format_float(number)),
        },
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                write_value(field, text);
            }
            text.push(']');
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
        assert_eq!(value(&document), "map[a:map[<:true k:2] b:[1 x y <nil>]]");
    }
}
