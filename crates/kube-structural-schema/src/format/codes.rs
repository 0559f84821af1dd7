//! Formats that are a row of digits or letters: identifiers, checksummed numbers, colours, base64.

use go_text::base64::{Alphabet, decode};

/// `bsonobjectid`: 12 bytes in hexadecimal.
pub(super) fn object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `uuid`: of any version.
pub(super) fn uuid(text: &str) -> bool {
    uuid_digits(text).is_some()
}

/// `uuid3`: version 3, of any variant.
pub(super) fn uuid3(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'3')
}

/// `uuid4`
pub(super) fn uuid4(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'4' && is_variant(digits[16]))
}

/// `uuid5`
pub(super) fn uuid5(text: &str) -> bool {
    uuid_digits(text).is_some_and(|digits| digits[12] == b'5' && is_variant(digits[16]))
}

fn is_variant(digit: u8) -> bool {
    matches!(digit, b'8' | b'9' | b'a' | b'A' | b'b' | b'B')
}

/// The 32 digits of a UUID; each of the four hyphens may be missing.
fn uuid_digits(text: &str) -> Option<[u8; 32]> {
    let mut digits = [0; 32];
    let mut rest = text.as_bytes();
    for (position, digit) in digits.iter_mut().enumerate() {
        if matches!(position, 8 | 12 | 16 | 20) {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let (first, after) = rest.split_first()?;
        if !first.is_ascii_hexdigit() {
            return None;
        }
        (*digit, rest) = (*first, after);
    }
    rest.is_empty().then_some(digits)
}

/// `isbn`: either form.
pub(super) fn isbn(text: &str) -> bool {
    isbn10(text) || isbn13(text)
}

/// `isbn10`: nine digits and a check digit, which may be `X`; spaces and hyphens do not count.
pub(super) fn isbn10(text: &str) -> bool {
    let code = compact(text);
    let [digits @ .., last] = code.as_slice() else { return false };
    if digits.len() != 9
        || !digits.iter().all(u8::is_ascii_digit)
        || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let check = if *last == b'X' { 10 } else { value(*last) };
    let sum: u32 = digits.iter().zip(1..).map(|(digit, weight)| weight * value(*digit)).sum();
    (sum + 10 * check).is_multiple_of(11)
}

/// `isbn13`: twelve digits and a check digit; spaces and hyphens do not count.
pub(super) fn isbn13(text: &str) -> bool {
    let code = compact(text);
    let [digits @ .., last] = code.as_slice() else { return false };
    if digits.len() != 12 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| weight * value(*digit)).sum();
    value(*last) == (10 - sum % 10) % 10
}

fn compact(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !is_space(*byte) && *byte != b'-').collect()
}

fn value(digit: u8) -> u32 {
    u32::from(digit - b'0')
}

/// `creditcard`: a number of one of six issuers with the right check digit; everything but digits is passed
/// over.
pub(super) fn credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| digits.starts_with(prefix));
    let known = match digits.len() {
        13 => begins(&["4"]),
        14 => begins(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => begins(&["34", "37", "2131", "1800"]),
        16 => begins(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([1, 2].into_iter().cycle())
        .map(|(digit, factor)| value(digit) * factor)
        .map(|product| product / 10 + product % 10)
        .sum();
    known && sum.is_multiple_of(10)
}

/// `ssn`: nine digits in groups of three, two and four, with a hyphen or a space between.
pub(super) fn ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(position, byte)| match position {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

/// `hexcolor`: three or six hexadecimal digits, with or without a number sign.
pub(super) fn hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `rgbcolor`: `rgb(r,g,b)` with numbers from 0 to 255 without leading zeros.
pub(super) fn rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            let part = part.trim_matches(|letter: char| u8::try_from(letter).is_ok_and(is_space));
            let canonical = !part.starts_with('0') || part == "0";
            canonical && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok()
        })
}

/// `byte`: padded base64 of the standard alphabet, not empty.
pub(super) fn base64(text: &str) -> bool {
    let line_end = |byte: u8| matches!(byte, b'\r' | b'\n');
    !text.is_empty() && !text.bytes().any(line_end) && decode(text.as_bytes(), Alphabet::Standard).is_some()
}

/// What `\s` means in Go.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}
