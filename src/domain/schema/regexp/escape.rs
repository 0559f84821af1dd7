//! What follows a backslash.
//! It must not know whether it stands between brackets.

use super::{Fault, Parsed, consumed, unicode};

/// The end of `\d`, `\pL` or `\p{Greek}`; none if the text starts with anything else.
pub(super) fn class(text: &str) -> Parsed<'_, Option<&str>> {
    match text.as_bytes() {
        [b'\\', b'p' | b'P', ..] => named_class(text).map(Some),
        [b'\\', b'd' | b'D' | b's' | b'S' | b'w' | b'W', ..] => Ok(Some(&text[2..])),
        _ => Ok(None),
    }
}

fn named_class(text: &str) -> Parsed<'_, &str> {
    let fault = |excerpt| Fault("invalid character class range", excerpt);
    let (name, rest) = match text[2..].strip_prefix('{') {
        Some(braced) => braced.split_once('}').ok_or(fault(text))?,
        None => text[2..].split_at(text[2..].chars().next().map_or(0, char::len_utf8)),
    };
    if unicode::is_class(name.strip_prefix('^').unwrap_or(name)) {
        Ok(rest)
    } else {
        Err(fault(consumed(text, rest)))
    }
}

/// The code point that an escape stands for, and its end.
pub(super) fn character(text: &str) -> Parsed<'_, (u32, &str)> {
    let mut rest = &text[1..];
    let Some(c) = next(&mut rest) else {
        return Err(Fault("trailing backslash at end of expression", ""));
    };
    let code = match c {
        // A single digit from 1 to 7 would be a reference to a group.
        '0' => Some(octal(0, &mut rest)),
        '1'..='7' if rest.starts_with(is_octal) => Some(octal(u32::from(c) - u32::from('0'), &mut rest)),
        'x' => hexadecimal(&mut rest),
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    code.map(|code| (code, rest)).ok_or_else(|| Fault("invalid escape sequence", consumed(text, rest)))
}

fn octal(first: u32, rest: &mut &str) -> u32 {
    let mut code = first;
    for _ in 0..2 {
        let Some(digit) = rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
        code = code * 8 + digit;
        *rest = &rest[1..];
    }
    code
}

fn is_octal(c: char) -> bool {
    c.is_digit(8)
}

/// Two digits, or any number of them in braces. What was read stays read when it is no number: Go shows it.
fn hexadecimal(rest: &mut &str) -> Option<u32> {
    let first = next(rest)?;
    if first != '{' {
        let second = next(rest);
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut code = None;
    loop {
        let c = next(rest)?;
        if c == '}' {
            return code;
        }
        code = Some(code.unwrap_or(0) * 16 + c.to_digit(16)?).filter(|code| *code <= u32::from(char::MAX));
        code?;
    }
}

pub(super) fn next(rest: &mut &str) -> Option<char> {
    let c = rest.chars().next()?;
    *rest = &rest[c.len_utf8()..];
    Some(c)
}
