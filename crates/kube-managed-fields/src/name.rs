//! Values in the FieldsV1 names of list items, as the server writes them: a name is compared as text.
//!
//! Source: structured-merge-diff v6 `fieldpath/serialize-pe.go`, whose writer is jsoniter with the options of
//! Go's own.

use serde_json::Value;

use go_text::number::Num;
use go_text::strconv::{format_exponent, format_plain};

/// Appends a value.
pub(super) fn write(value: &Value, name: &mut Vec<u8>) {
    match value {
        Value::Null => name.extend_from_slice(b"null"),
        Value::Bool(value) => name.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Number(value) => name.extend_from_slice(number(Num::of(value)).as_bytes()),
        Value::String(text) => write_text(text, name),
        Value::Array(items) => {
            name.push(b'[');
            for (index, item) in items.iter().enumerate() {
                name.extend((index > 0).then_some(b','));
                write(item, name);
            }
            name.push(b']');
        }
        Value::Object(fields) => {
            name.push(b'{');
            for (index, (field, value)) in fields.iter().enumerate() {
                name.extend((index > 0).then_some(b','));
                write_text(field, name);
                name.push(b':');
                write(value, name);
            }
            name.push(b'}');
        }
    }
}

fn number(value: Num) -> String {
    match value {
        Num::Int(int) => int.to_string(),
        Num::Float(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => format_exponent(float),
        Num::Float(float) => format_plain(float),
    }
}

/// Appends a text, in which what HTML has a meaning for is escaped.
pub(super) fn write_text(text: &str, name: &mut Vec<u8>) {
    name.push(b'"');
    for c in text.chars() {
        match c {
            '"' | '\\' => name.extend_from_slice(&[b'\\', c as u8]),
            '\n' => name.extend_from_slice(br"\n"),
            '\r' => name.extend_from_slice(br"\r"),
            '\t' => name.extend_from_slice(br"\t"),
            '\0'..'\u{20}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                name.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    name.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_what_the_server_writes() {
        // As structured-merge-diff 6.4.2 wrote them.
        for (value, expected) in [
            (json!("a<b>&c"), r#""a\u003cb\u003e\u0026c""#),
            (json!("\u{8}\u{c}\n\r\t\u{1f}\u{7f}"), "\"\\u0008\\u000c\\n\\r\\t\\u001f\u{7f}\""),
            (json!("\u{2028}é\"\\"), r#""\u2028é\"\\""#),
            (json!(1e20), "100000000000000000000"),
            (json!(1e-7), "1e-07"),
            (json!(1.5), "1.5"),
            (json!(-3), "-3"),
            (json!([true, null, { "b": 1, "a<": "" }]), r#"[true,null,{"a\u003c":"","b":1}]"#),
        ] {
            let mut name = Vec::new();
            write(&value, &mut name);
            assert_eq!(String::from_utf8_lossy(&name), expected);
        }
    }
}
