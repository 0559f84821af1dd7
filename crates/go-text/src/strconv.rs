//! Numbers and quoted texts, as Go's `strconv` reads and writes them.
//!
//! Source: Go 1.26 `strconv/{atof,ftoa,quote}.go`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use super::hexadecimal;
use super::regexp::Pattern;

/// `%v` and `%g` of a float: the shortest digits that give it back, with an exponent below 0.0001 and from a
/// million on.
pub fn format_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = Shortest::of(float);
    if (-4..6).contains(&shortest.exponent) { shortest.plain() } else { shortest.scientific(2) }
}

/// `strconv.FormatFloat(f, 'f', -1, 64)` of a finite float: the shortest digits that give it back, without an
/// exponent.
pub fn format_plain(float: f64) -> String {
    Shortest::of(float).plain()
}

/// `strconv.FormatFloat(f, 'e', -1, 64)` of a finite float, with an exponent of as few digits as it needs, as
/// `encoding/json` writes it.
pub(super) fn format_scientific(float: f64) -> String {
    Shortest::of(float).scientific(1)
}

/// `strconv.FormatFloat(f, 'e', -1, 64)` of a finite float.
pub fn format_exponent(float: f64) -> String {
    Shortest::of(float).scientific(2)
}

/// The fewest digits that give a float back; of two that are equally near, Go takes the even one and Rust the
/// larger.
struct Shortest {
    negative: bool,
    digits: String,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl Shortest {
    fn of(float: f64) -> Self {
        let mut text = format!("{:e}", float.abs());
        let count = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
        // With a number of digits, Rust rounds half to even.
        let even = format!("{:.*e}", count.saturating_sub(1), float.abs());
        if even.parse() == Ok(float.abs()) {
            text = even;
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        Self {
            negative: float.is_sign_negative(),
            digits: mantissa.replace('.', ""),
            exponent: exponent.parse().unwrap_or_default(),
        }
    }

    fn plain(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let digits = &self.digits;
        match usize::try_from(self.exponent) {
            Ok(exponent) if exponent + 1 >= digits.len() => {
                format!("{sign}{digits:0<width$}", width = exponent + 1)
            }
            Ok(exponent) => format!("{sign}{}.{}", &digits[..=exponent], &digits[exponent + 1..]),
            Err(_) => format!("{sign}0.{}{digits}", "0".repeat(self.exponent.unsigned_abs() as usize - 1)),
        }
    }

    fn scientific(&self, exponent_digits: usize) -> String {
        let sign = if self.negative { "-" } else { "" };
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if self.exponent < 0 { '-' } else { '+' };
        format!(
            "{sign}{first}{point}{rest}e{exponent_sign}{:0exponent_digits$}",
            self.exponent.unsigned_abs()
        )
    }
}

/// `strconv.ParseFloat`: what is too large for a double is an error. `None` if Go returns one.
pub fn parse_float(text: &str) -> Option<f64> {
    let text = &*without_underscores(text)?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        let value = hexadecimal::parse(digits)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    let named = unsigned.starts_with(['i', 'I']) || (value.is_nan() && unsigned == text);
    (value.is_finite() || named).then_some(value)
}

/// A number without the underscores between its digits; `None` if one is elsewhere. A prefix of the base
/// counts as a digit.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_prefix = |prefix: &&str| unsigned.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let prefix = ["0x", "0o", "0b"].into_iter().find(is_prefix);
    let is_hexadecimal = prefix == Some("0x");
    let is_digit = |c: char| c.is_ascii_digit() || is_hexadecimal && c.is_ascii_hexdigit();
    let mut last = if prefix.is_some() { '0' } else { ' ' };
    for c in unsigned.chars().skip(prefix.map_or(0, str::len)) {
        if (c == '_' && !is_digit(last)) || (last == '_' && !is_digit(c)) {
            return None;
        }
        last = c;
    }
    (last != '_').then(|| text.replace('_', "").into())
}

static PRINTABLE: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"^[\pL\pM\pN\pP\pS]$").ok());

/// `unicode.IsPrint`
pub fn is_print(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        _ => PRINTABLE.as_ref().is_some_and(|printable| printable.matches(letter.encode_utf8(&mut [0; 4]))),
    }
}

/// `strconv.Quote`
pub fn quote(string: &str) -> String {
    // Writing to a String cannot fail.
    let mut text = String::from('"');
    for letter in string.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0C' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0B' => text.push_str("\\v"),
            ' '..='~' => text.push(letter),
            _ if letter.is_ascii() => {
                let _ = write!(text, "\\x{:02x}", u32::from(letter));
            }
            _ if is_print(letter) => text.push(letter),
            _ if u32::from(letter) < 0x1_0000 => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => {
                let _ = write!(text, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    text.push('"');
    text
}
