//! The syntax of values in controller-gen's markers, which is not quite JSON.
//!
//! As `sigs.k8s.io/controller-tools/pkg/markers` v0.23 reads arguments of any type, with all that is peculiar
//! there: it guesses the type first, and what looks like nothing else is a text.

use serde_json::{Map, Number, Value};

use super::quote::{cut, unquote};
use super::scanner::{Scanner, Token};
use go_text::strconv::parse_float;

/// How deep values may be nested; Go's reader has no limit, and no marker comes near.
const DEEPEST: usize = 64;

/// A value as controller-gen reads it.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: Value,
    /// Whether controller-gen drops a word of it: the last one of a text without quotes, if a space stands
    /// between it and a comma or brace.
    pub(super) is_cut: bool,
}

/// Reads a value, which is whatever stands behind the marker's equals sign.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse(text: &str) -> Result<Read, String> {
    if text.trim().is_empty() {
        return Err("it has no value".to_owned());
    }
    let mut reader = Reader { text, scanner: Scanner::new(text), is_cut: false };
    let value = reader.any(0)?;
    let rest = reader.scanner.rest().trim();
    if reader.scanner.scan() != Token::End {
        return Err(format!("something follows the value: {}", cut(rest)));
    }
    if reader.scanner.has_failed {
        return Err("a number or quoted text is malformed".to_owned());
    }
    Ok(Read { value, is_cut: reader.is_cut })
}

/// What a value looks like.
#[derive(Debug)]
enum Kind {
    Whole,
    Float,
    Text,
    Bool,
    List(Box<Self>),
    Map,
}

/// The kind of the value that a text begins with. Lists without braces are an older form, which items of
/// lists do not have.
fn guess(text: &str, may_be_list: bool, depth: usize) -> Result<Kind, String> {
    let kind = guess_item(text, depth)?;
    if !may_be_list {
        return Ok(kind);
    }
    let mut scanner = Scanner::new(text);
    loop {
        match scanner.scan() {
            Token::Sign(';') => return Ok(Kind::List(Box::new(kind))),
            Token::Sign(',') | Token::End => return Ok(kind),
            _ => {}
        }
    }
}

fn guess_item(text: &str, depth: usize) -> Result<Kind, String> {
    if depth > DEEPEST {
        return Err("it is nested too deep".to_owned());
    }
    let mut scanner = Scanner::new(text);
    match scanner.peek_behind_space() {
        Some('"' | '`') => return Ok(Kind::Text),
        Some('{') => {
            scanner.scan();
            let is_closed = scanner.peek_behind_space() == Some('}');
            let first = guess_item(scanner.rest(), depth + 1)?;
            if matches!(first, Kind::Text) {
                bare_or_quoted(&mut scanner, true);
                if scanner.scan() == Token::Sign(':') || is_closed {
                    return Ok(Kind::Map);
                }
            }
            return Ok(Kind::List(Box::new(first)));
        }
        Some('t' | 'f') => {
            scanner.scan();
            return Ok(if matches!(scanner.token(), "true" | "false") { Kind::Bool } else { Kind::Text });
        }
        _ => {}
    }
    let mut token = scanner.scan();
    if token == Token::Sign('-') {
        token = scanner.scan();
    }
    let is_whole = matches!(scanner.peek_behind_space(), None | Some(',' | ';' | '}'));
    Ok(match token {
        Token::Whole if is_whole && !scanner.has_failed => Kind::Whole,
        Token::Float if is_whole && !scanner.has_failed => Kind::Float,
        _ => Kind::Text,
    })
}

/// Reads a text: one token if it has quotes; otherwise all up to a comma, semicolon or brace, and in keys a
/// colon. `None` if the quotes are not those of Go.
fn bare_or_quoted(scanner: &mut Scanner<'_>, is_key: bool) -> Option<(usize, String)> {
    // Digits in texts are letters like others, and never malformed.
    scanner.has_numbers = false;
    let first = scanner.scan();
    let start = scanner.start;
    let text = if first == Token::Quoted {
        unquote(scanner.token())
    } else {
        let ends = |next: Option<char>| match next {
            None | Some(',' | ';' | '}') => true,
            Some(next) => is_key && next == ':',
        };
        while !ends(scanner.peek_behind_space()) {
            scanner.scan();
        }
        Some(scanner.since(start).to_owned())
    };
    scanner.has_numbers = true;
    text.map(|text| (start, text))
}

struct Reader<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    is_cut: bool,
}

impl Reader<'_> {
    fn any(&mut self, depth: usize) -> Result<Value, String> {
        let kind = guess(self.scanner.rest(), true, depth)?;
        self.value(&kind, depth)
    }

    fn value(&mut self, kind: &Kind, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("it is nested too deep".to_owned());
        }
        match kind {
            Kind::Text => self.text(false).map(Value::String),
            Kind::Bool => {
                self.scanner.scan();
                match self.scanner.token() {
                    "true" => Ok(Value::Bool(true)),
                    "false" => Ok(Value::Bool(false)),
                    other => Err(format!("{} is not a boolean, as the first item is", cut(other))),
                }
            }
            Kind::Whole | Kind::Float => self.number(kind).map(Value::Number),
            Kind::List(of) => self.list(of, depth + 1).map(Value::Array),
            Kind::Map => self.map(depth + 1).map(Value::Object),
        }
    }

    fn text(&mut self, is_key: bool) -> Result<String, String> {
        let (start, text) = bare_or_quoted(&mut self.scanner, is_key)
            .filter(|_| !self.scanner.has_failed)
            .ok_or("a quoted text is malformed")?;
        let has_quotes = self.text[start..].starts_with(['"', '`']);
        self.is_cut |= !has_quotes && self.scanner.token().is_empty() && start < self.text.len();
        Ok(text)
    }

    fn number(&mut self, kind: &Kind) -> Result<Number, String> {
        // Unlike the guess, this takes no space before the sign.
        let sign = if self.scanner.peek() == Some('-') {
            self.scanner.scan();
            "-"
        } else {
            ""
        };
        let token = self.scanner.scan();
        let digits = self.scanner.token();
        let known = match kind {
            Kind::Whole if token == Token::Whole => {
                format!("{sign}{digits}").parse::<i64>().ok().map(Number::from)
            }
            Kind::Float if matches!(token, Token::Whole | Token::Float) => parse_float(digits)
                .and_then(|float| Number::from_f64(if sign.is_empty() { float } else { -float })),
            _ => {
                let what = if matches!(kind, Kind::Whole) { "a whole number" } else { "a number" };
                return Err(match token {
                    Token::Sign('-') => "a space stands before a negative number".to_owned(),
                    _ => format!("{} is not {what}, as the first item is", cut(digits)),
                });
            }
        };
        // Go's scanner knows hexadecimal numbers and separators; what turns the text into a number does not.
        known.ok_or_else(|| {
            format!("controller-gen cannot read the number {sign}{}: write plain decimal digits", cut(digits))
        })
    }

    fn list(&mut self, of: &Kind, depth: usize) -> Result<Vec<Value>, String> {
        let mut items = Vec::new();
        if self.scanner.peek_behind_space() != Some('{') {
            while !matches!(self.scanner.peek_behind_space(), None | Some(',' | '}')) {
                items.push(self.value(of, depth)?);
                match self.scanner.peek_behind_space() {
                    None | Some(',' | '}') => break,
                    Some(';') => {
                        self.scanner.scan();
                    }
                    Some(_) => return Err("a semicolon is missing".to_owned()),
                }
            }
            return Ok(items);
        }
        self.scanner.scan();
        while !matches!(self.scanner.peek_behind_space(), None | Some('}')) {
            items.push(self.value(of, depth)?);
            if self.scanner.peek_behind_space() == Some('}') {
                break;
            }
            self.expect(',', "a comma or a closing brace is missing")?;
        }
        self.expect('}', "a closing brace is missing")?;
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let mut fields = Map::new();
        self.expect('{', "an opening brace is missing")?;
        while !matches!(self.scanner.peek_behind_space(), None | Some('}')) {
            let key = self.text(true)?;
            self.expect(':', "a colon is missing behind a key")?;
            let value = self.any(depth)?;
            fields.insert(key, value);
            if self.scanner.peek_behind_space() == Some('}') {
                break;
            }
            self.expect(',', "a comma or a closing brace is missing")?;
        }
        self.expect('}', "a closing brace is missing")?;
        Ok(fields)
    }

    fn expect(&mut self, sign: char, problem: &str) -> Result<(), String> {
        if self.scanner.scan() == Token::Sign(sign) { Ok(()) } else { Err(problem.to_owned()) }
    }
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
            ("0644", json!(644)),
            ("1.5", json!(1.5)),
            ("0x1.8p1", json!(3.0)),
            ("089", json!("089")),
            ("true", json!(true)),
            ("Cluster", json!("Cluster")),
            ("\"a, b\"", json!("a, b")),
            ("`a\"b`", json!("a\"b")),
            ("100Mi", json!("100Mi")),
            ("2024-01-15", json!("2024-01-15")),
            ("https://example.com", json!("https://example.com")),
            ("trueish", json!("trueish")),
            ("two words", json!("two words")),
            ("{}", json!({})),
            ("{a,b}", json!(["a", "b"])),
            ("{1,2}", json!([1, 2])),
            ("a;b", json!(["a", "b"])),
            ("{a: 1, b: {c: \"x\"}}", json!({"a": 1, "b": {"c": "x"}})),
            ("{\"a\":{\"b\":{}}, \"c\": {1}}", json!({"a": {"b": {}}, "c": [1]})),
            ("{a: b:c}", json!({"a": "b:c"})),
            ("{{group: g, kind: K}}", json!([{"group": "g", "kind": "K"}])),
            // No JSON: brackets are letters like others.
            ("[]", json!("[]")),
            ("null", json!("null")),
            ("'a'", json!("'a'")),
        ] {
            assert_eq!(parse(text), Ok(Read { value, is_cut: false }), "{text}");
        }
        for text in [
            "",
            " ",
            "\"a",
            "{a",
            "{a: 1",
            "{a: 1, b}",
            "[\"a\", \"b\"]",
            "\"a\" b",
            "true-ish",
            "0x1F",
            "1_000",
            " -1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"{".repeat(100_000)).is_err());
        assert!(parse(&"{a:".repeat(100_000)).is_err());
    }

    #[test]
    fn words_that_controller_gen_drops_are_noticed() {
        assert_eq!(parse("{ a , b }"), Ok(Read { value: json!(["", ""]), is_cut: true }));
        assert_eq!(parse("{a: b c }"), Ok(Read { value: json!({"a": "b "}), is_cut: true }));
    }
}
