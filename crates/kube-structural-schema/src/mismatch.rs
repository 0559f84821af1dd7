//! What is wrong with a document that has not the form of a type, without the values in it: serde's own texts
//! quote them.

/// What is wrong, in words that may be shown whatever the document holds.
pub fn without_values(error: &serde_json::Error) -> String {
    if !error.is_data() {
        // These texts name a place and a character that was expected.
        return error.to_string();
    }
    let place = match error.line() {
        0 => String::new(),
        line => format!(" at line {line} column {}", error.column()),
    };
    let text = error.to_string();
    let text = text.strip_suffix(&place).unwrap_or(&text);
    // The expectation comes from the program, not from the document, and is at the end.
    let expected = text.rfind(", expected ").map_or("", |at| &text[at..]);
    // The names of the program's types mean nothing to a reader.
    let expected = if expected.starts_with(", expected struct ") { ", expected an object" } else { expected };
    let found = [("invalid type: ", "a value of another type"), ("invalid value: ", "another value")];
    let problem = match text {
        // These fields are of the type that is read.
        _ if text.starts_with("missing field ") || text.starts_with("duplicate field ") => text.to_owned(),
        _ if text.starts_with("unknown variant ") => format!("unknown value{expected}"),
        _ if text.starts_with("unknown field ") => format!("unknown field{expected}"),
        _ => match found.iter().find(|(start, _)| text.starts_with(start)) {
            Some((start, otherwise)) => {
                let kind = text[start.len()..].split(['`', '"', ',']).next().unwrap_or_default().trim_end();
                let is_plain = !kind.is_empty()
                    && kind.chars().all(|letter| letter.is_ascii_lowercase() || letter == ' ');
                format!("{start}{}{expected}", if is_plain { kind } else { otherwise })
            }
            None => "it has not the form that is expected".to_owned(),
        },
    };
    format!("{problem}{place}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        #[allow(dead_code)]
        mode: Mode,
        #[allow(dead_code)]
        list: Option<Vec<String>>,
        #[allow(dead_code)]
        number: Option<u8>,
        #[allow(dead_code)]
        pair: Option<(u8, u8)>,
    }

    #[derive(Debug, Deserialize)]
    enum Mode {
        On,
        Off,
    }

    fn reported(document: Value) -> String {
        without_values(&Known::deserialize(&document).expect_err("it does not fit"))
    }

    #[test]
    fn a_text_names_what_is_expected_and_no_value() {
        for (document, text) in [
            (json!({}), "missing field `mode`"),
            (json!({ "mode": "canary" }), "unknown value, expected `On` or `Off`"),
            (json!({ "mode": "canary, expected x" }), "unknown value, expected `On` or `Off`"),
            (json!({ "canary": 1 }), "unknown field, expected one of `mode`, `list`, `number`, `pair`"),
            (json!({ "mode": "On", "list": "canary" }), "invalid type: string, expected a sequence"),
            (json!({ "mode": "On", "list": ["a", 77] }), "invalid type: integer, expected a string"),
            (json!({ "mode": "On", "list": [{ "canary": 1 }] }), "invalid type: map, expected a string"),
            (json!({ "mode": "On", "number": 7777 }), "invalid value: integer, expected u8"),
            (json!({ "mode": "On", "number": 77.5 }), "invalid type: floating point, expected u8"),
            (json!({ "mode": "On", "pair": [7] }), "it has not the form that is expected"),
            (json!("canary"), "invalid type: string, expected an object"),
        ] {
            assert_eq!(reported(document.clone()), text, "{document}");
        }
    }

    #[test]
    fn a_place_is_kept() {
        let reported =
            |text: &str| without_values(&serde_json::from_str::<Known>(text).expect_err("it does not fit"));
        assert_eq!(
            reported("{\"mode\": \"canary\"}"),
            "unknown value, expected `On` or `Off` at line 1 column 17"
        );
        assert_eq!(reported("{\"mode\" canary"), "expected `:` at line 1 column 9");
    }
}
