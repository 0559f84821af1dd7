//! Character classes in brackets.
//! It must not collect the characters: only the form can be wrong.

use super::{Fault, Parsed, consumed, escape};

const RANGE: &str = "invalid character class range";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The end of the class that starts the text.
pub(super) fn bracketed(text: &str) -> Parsed<'_, &str> {
    let mut rest = &text[1..];
    rest = rest.strip_prefix('^').unwrap_or(rest);
    let mut first = true;
    while first || !rest.starts_with(']') {
        // A closing bracket in front stands for itself.
        first = false;
        rest = match posix(rest)?.or(escape::class(rest)?) {
            Some(rest) => rest,
            None => range(rest, text)?,
        };
    }
    Ok(&rest[1..])
}

/// The end of `[:alpha:]` or `[:^alpha:]`; none if the text starts with anything else.
fn posix(text: &str) -> Parsed<'_, Option<&str>> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|text| text.split_once(":]")) else {
        return Ok(None);
    };
    if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some(rest))
    } else {
        Err(Fault(RANGE, consumed(text, rest)))
    }
}

/// The end of one character, or of two with a dash between them.
fn range<'p>(text: &'p str, class: &'p str) -> Parsed<'p, &'p str> {
    let (low, rest) = character(text, class)?;
    match rest.strip_prefix('-') {
        Some(after) if !after.is_empty() && !after.starts_with(']') => {
            let (high, rest) = character(after, class)?;
            if high < low { Err(Fault(RANGE, consumed(text, rest))) } else { Ok(rest) }
        }
        _ => Ok(rest),
    }
}

fn character<'p>(text: &'p str, class: &'p str) -> Parsed<'p, (u32, &'p str)> {
    if text.starts_with('\\') {
        return escape::character(text);
    }
    let mut rest = text;
    match escape::next(&mut rest) {
        Some(c) => Ok((u32::from(c), rest)),
        None => Err(Fault("missing closing ]", class)),
    }
}
