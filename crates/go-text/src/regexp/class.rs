//! Character classes and escapes of Go's syntax.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::error::{SyntaxError, error};
use super::unicode;

/// What stands behind a backslash.
pub(super) enum Escape {
    /// `\d`, `\pL` and the like.
    Class(ClassUnicode),
    /// One character; `None` if the number is a surrogate's.
    Character(Option<char>),
}

const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// The class of one character.
pub(super) fn single(letter: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(letter, letter)])
}

/// Reads the escape at the beginning of a text, and returns what follows it.
pub(super) fn escape(text: &str, fold: bool) -> Result<(Escape, &str), SyntaxError> {
    if let Some((class, rest)) = class_escape(text, fold)? {
        return Ok((Escape::Class(class), rest));
    }
    let (code, rest) = character(text)?;
    Ok((Escape::Character(char::from_u32(code)), rest))
}

/// Reads the class that begins with the bracket at the beginning of a text, and returns what follows it.
pub(super) fn bracketed(whole: &str, fold: bool) -> Result<(ClassUnicode, &str), SyntaxError> {
    let mut rest = &whole[1..];
    let negated = rest.starts_with('^');
    if negated {
        rest = &rest[1..];
    }
    let mut class = ClassUnicode::empty();
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((named, after)) = posix(rest, fold)? {
            class.union(&named);
            rest = after;
            continue;
        }
        if let Some((named, after)) = class_escape(rest, fold)? {
            class.union(&named);
            rest = after;
            continue;
        }
        let start = rest;
        let (low, mut after) = member(rest, whole)?;
        let mut high = low;
        if after.len() >= 2 && after.starts_with('-') && !after[1..].starts_with(']') {
            (high, after) = member(&after[1..], whole)?;
            if high < low {
                return Err(error("invalid character class range", &start[..start.len() - after.len()]));
            }
        }
        let mut range = range(low, high);
        if fold {
            unicode::fold(&mut range);
        }
        class.union(&range);
        rest = after;
    }
    if negated {
        class.negate();
    }
    Ok((class, &rest[1..]))
}

/// One end of a range.
fn member<'t>(text: &'t str, whole: &str) -> Result<(u32, &'t str), SyntaxError> {
    if text.starts_with('\\') {
        return character(text);
    }
    match text.chars().next() {
        None => Err(error("missing closing ]", whole)),
        Some(letter) => Ok((u32::from(letter), &text[letter.len_utf8()..])),
    }
}

/// The characters from one code point to another; surrogates are none.
fn range(low: u32, high: u32) -> ClassUnicode {
    let below = (low, high.min(SURROGATES.start() - 1));
    let above = (low.max(SURROGATES.end() + 1), high);
    let ends = [below, above].into_iter().filter(|(low, high)| low <= high);
    let ranges = ends
        .filter_map(|(low, high)| Some(ClassUnicodeRange::new(char::from_u32(low)?, char::from_u32(high)?)));
    ClassUnicode::new(ranges)
}

/// `[:name:]` and `[:^name:]` inside brackets.
fn posix(text: &str, fold: bool) -> Result<Option<(ClassUnicode, &str)>, SyntaxError> {
    let Some((inner, rest)) = text.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) else {
        return Ok(None);
    };
    let (name, negated) = inner.strip_prefix('^').map_or((inner, false), |name| (name, true));
    let ranges: &[(char, char)] = match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7F')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1F'), ('\x7F', '\x7F')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => WORD,
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return Err(error("invalid character class range", &text[..text.len() - rest.len()])),
    };
    Ok(Some((group(ranges, negated, fold), rest)))
}

const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

/// `\d`, `\pL`, `\p{Greek}` and their opposites.
fn class_escape(text: &str, fold: bool) -> Result<Option<(ClassUnicode, &str)>, SyntaxError> {
    let Some(escaped) = text.strip_prefix('\\') else { return Ok(None) };
    let Some(letter) = escaped.chars().next() else { return Ok(None) };
    let rest = &escaped[letter.len_utf8()..];
    let ranges: &[(char, char)] = match letter.to_ascii_lowercase() {
        'd' => &[('0', '9')],
        's' => &[('\t', '\n'), ('\x0C', '\r'), (' ', ' ')],
        'w' => WORD,
        'p' => return unicode_class(text, letter == 'P', rest, fold),
        _ => return Ok(None),
    };
    Ok(Some((group(ranges, letter.is_ascii_uppercase(), fold), rest)))
}

/// What follows `\p` or `\P`.
fn unicode_class<'t>(
    text: &'t str,
    mut negated: bool,
    rest: &'t str,
    fold: bool,
) -> Result<Option<(ClassUnicode, &'t str)>, SyntaxError> {
    let (mut name, after) = if rest.starts_with('{') {
        let Some(end) = rest.find('}') else {
            return Err(error("invalid character class range", text));
        };
        (&rest[1..end], &rest[end + 1..])
    } else {
        rest.split_at(rest.chars().next().map_or(0, char::len_utf8))
    };
    if let Some(inverse) = name.strip_prefix('^') {
        negated = !negated;
        name = inverse;
    }
    let Some(mut class) = unicode::named(name) else {
        return Err(error("invalid character class range", &text[..text.len() - after.len()]));
    };
    if fold {
        unicode::fold(&mut class);
    }
    if negated {
        class.negate();
    }
    Ok(Some((class, after)))
}

fn group(ranges: &[(char, char)], negated: bool, fold: bool) -> ClassUnicode {
    let mut class = ClassUnicode::new(ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high)));
    if fold {
        unicode::fold(&mut class);
    }
    if negated {
        class.negate();
    }
    class
}

/// An escaped single character as a code point.
fn character(text: &str) -> Result<(u32, &str), SyntaxError> {
    let mut rest = text[1..].chars();
    let Some(letter) = rest.next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let plain = match letter {
        'a' => Some(0x07),
        'f' => Some(0x0C),
        'n' => Some(0x0A),
        'r' => Some(0x0D),
        't' => Some(0x09),
        'v' => Some(0x0B),
        '0'..='7' => return octal(text, letter == '0'),
        'x' => return hexadecimal(text),
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => Some(u32::from(other)),
        _ => None,
    };
    let rest = rest.as_str();
    plain.map(|code| (code, rest)).ok_or_else(|| invalid(text, rest))
}

/// Up to three octal digits; a single one that is not zero would be a back reference.
fn octal(text: &str, zero: bool) -> Result<(u32, &str), SyntaxError> {
    let digits = text[1..].bytes().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
    let (number, rest) = text[1..].split_at(digits);
    if digits == 1 && !zero {
        return Err(invalid(text, rest));
    }
    Ok((number.bytes().fold(0, |code, digit| code * 8 + u32::from(digit - b'0')), rest))
}

/// `\x7F` or `\x{10FFFF}`.
fn hexadecimal(text: &str) -> Result<(u32, &str), SyntaxError> {
    let mut rest = text[2..].chars();
    let Some(first) = rest.next() else { return Err(invalid(text, "")) };
    if first != '{' {
        // Where the pattern ends here, Go reads on and finds nothing wrong but the digit.
        let second = rest.next();
        let code = first.to_digit(16).zip(second.and_then(|digit| digit.to_digit(16)));
        let rest = rest.as_str();
        return code.map(|(high, low)| (high * 16 + low, rest)).ok_or_else(|| invalid(text, rest));
    }
    let mut code = None;
    for digit in rest.by_ref() {
        if digit == '}' {
            let rest = rest.as_str();
            return code.map(|code| (code, rest)).ok_or_else(|| invalid(text, rest));
        }
        let value = digit.to_digit(16).map(|value| code.unwrap_or(0) * 16 + value);
        match value.filter(|value| *value <= u32::from(char::MAX)) {
            None => break,
            some => code = some,
        }
    }
    Err(invalid(text, rest.as_str()))
}

/// Go shows the escape as far as it has read it.
fn invalid(text: &str, rest: &str) -> SyntaxError {
    error("invalid escape sequence", &text[..text.len() - rest.len()])
}
