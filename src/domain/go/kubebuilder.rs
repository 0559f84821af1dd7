//! The syntax of values in controller-gen's markers, which is not quite JSON.
//! It must not know which marker a value is of.
//!
//! As `sigs.k8s.io/controller-tools/pkg/markers` v0.23 reads arguments of any type: what looks like nothing else is a text.

use serde_json::{Map, Number, Value};

use super::quote::{cut, unquote};

/// How deep values may be nested; Go's reader has no limit, and no marker comes near.
const DEEPEST: usize = 64;

/// Reads a value to the end of the marker.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    if reader.rest().is_empty() {
        return Err("it has no value".to_owned());
    }
    let first = reader.value(false, 0)?;
    reader.space();
    let mut items = vec![first];
    // Lists without braces are an older form.
    while reader.take(';') {
        items.push(reader.value(false, 0)?);
        reader.space();
    }
    if !reader.rest().is_empty() {
        return Err(format!("something follows the value: {}", cut(reader.rest())));
    }
    Ok(if items.len() == 1 { items.swap_remove(0) } else { Value::Array(items) })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, sign: char) -> bool {
        let is_there = self.rest().starts_with(sign);
        if is_there {
            self.at += sign.len_utf8();
        }
        is_there
    }

    fn value(&mut self, in_map: bool, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("it is nested too deep".to_owned());
        }
        self.space();
        if self.take('{') {
            return self.braces(depth + 1);
        }
        if self.rest().starts_with(['"', '`']) {
            return self.quoted().map(Value::String);
        }
        let word = self.bare(in_map);
        // The first word decides, as Go's scanner splits them.
        let end = word.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(word.len());
        match &word[..end] {
            "true" | "false" if end < word.len() => Err(format!("something follows {}", &word[..end])),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Ok(number(word).map_or_else(|| Value::String(word.to_owned()), Value::Number)),
        }
    }

    /// What is inside of braces: fields where the first text is followed by a colon, items otherwise.
    fn braces(&mut self, depth: usize) -> Result<Value, String> {
        self.space();
        if self.take('}') {
            return Ok(Value::Object(Map::new()));
        }
        if let Some(fields) = self.fields(depth)? {
            return Ok(Value::Object(fields));
        }
        let mut items = Vec::new();
        loop {
            items.push(self.value(false, depth)?);
            self.space();
            if self.take('}') {
                return Ok(Value::Array(items));
            }
            if !self.take(',') {
                return Err("a comma or a closing brace is missing".to_owned());
            }
            self.space();
            if self.take('}') {
                return Ok(Value::Array(items));
            }
        }
    }

    /// The fields of a map; none, and nothing read, where it is a list.
    fn fields(&mut self, depth: usize) -> Result<Option<Map<String, Value>>, String> {
        let start = self.at;
        let mut fields = Map::new();
        loop {
            self.space();
            if !fields.is_empty() && self.take('}') {
                return Ok(Some(fields));
            }
            let key = match self.rest().chars().next() {
                Some('"' | '`') => self.quoted()?,
                Some('{') => String::new(),
                _ => self.bare(true).to_owned(),
            };
            self.space();
            if !self.take(':') {
                if fields.is_empty() {
                    self.at = start;
                    return Ok(None);
                }
                return Err("a colon is missing behind a key".to_owned());
            }
            let value = self.value(true, depth)?;
            fields.insert(key, value);
            self.space();
            if self.take('}') {
                return Ok(Some(fields));
            }
            if !self.take(',') {
                return Err("a comma or a closing brace is missing".to_owned());
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let quote = if rest.starts_with('`') { '`' } else { '"' };
        let mut is_escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, letter)| {
            let ends = *letter == quote && !is_escaped;
            is_escaped = quote == '"' && *letter == '\\' && !is_escaped;
            ends
        });
        let (end, _) = end.ok_or("a quote is not closed")?;
        let literal = &rest[..=end];
        self.at += literal.len();
        unquote(literal).ok_or_else(|| "a quoted text is malformed".to_owned())
    }

    /// A text without quotes: up to a comma, semicolon or brace, and in maps a colon.
    fn bare(&mut self, in_map: bool) -> &'a str {
        let rest = self.rest();
        let ends = |next: char| matches!(next, ',' | ';' | '}') || in_map && next == ':';
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word.trim_end()
    }
}

/// A number in Go's syntax; none where it is a text.
fn number(word: &str) -> Option<Number> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits.trim_start()),
        None => ("", word),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let plain = digits.replace('_', "");
    let radix = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    let prefixed = radix.iter().find_map(|(prefix, radix)| Some((plain.strip_prefix(prefix)?, *radix)));
    let old_octal =
        plain.len() > 1 && plain.starts_with('0') && plain.bytes().all(|digit| digit.is_ascii_digit());
    let whole = match prefixed {
        Some((digits, radix)) => i64::from_str_radix(digits, radix),
        None => i64::from_str_radix(&plain, if old_octal { 8 } else { 10 }),
    };
    if let Ok(whole) = whole {
        return Some(Number::from(if sign.is_empty() { whole } else { whole.checked_neg()? }));
    }
    let is_float = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-');
    let float = plain.chars().all(is_float).then(|| plain.parse::<f64>().ok()).flatten()?;
    Number::from_f64(if sign.is_empty() { float } else { -float })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_controller_gen_reads_them() {
        for (text, value) in [
            ("5", json!(5)),
            ("-1", json!(-1)),
            ("1.5", json!(1.5)),
            ("0x1F", json!(31)),
            ("true", json!(true)),
            ("Cluster", json!("Cluster")),
            ("\"a, b\"", json!("a, b")),
            ("`a\"b`", json!("a\"b")),
            ("100Mi", json!("100Mi")),
            ("2024-01-15", json!("2024-01-15")),
            ("10.0.0.0/8", json!("10.0.0.0/8")),
            ("https://example.com", json!("https://example.com")),
            ("trueish", json!("trueish")),
            ("two words", json!("two words")),
            ("{}", json!({})),
            ("{a,b}", json!(["a", "b"])),
            ("{1,2}", json!([1, 2])),
            ("{\"a\",\"b\"}", json!(["a", "b"])),
            ("a;b", json!(["a", "b"])),
            ("{a: 1, b: {c: \"x\"}}", json!({"a": 1, "b": {"c": "x"}})),
            ("{\"a\":{\"b\":{}}, \"c\": {1}}", json!({"a": {"b": {}}, "c": [1]})),
            ("{{group: g, kind: K}}", json!([{"group": "g", "kind": "K"}])),
            // No JSON: brackets are letters like others.
            ("[]", json!("[]")),
            ("null", json!("null")),
            ("'a'", json!("'a'")),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        for text in ["", " ", "\"a", "{a", "{a: 1", "{a: 1, b}", "[\"a\", \"b\"]", "\"a\" b", "true-ish"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"{".repeat(100_000)).is_err());
        assert!(parse(&"{a:".repeat(100_000)).is_err());
    }
}
