//! Pieces of Go sources as texts: string literals, and excerpts for messages.

use etch_core::words;

/// The text of a string literal, in double quotes or backquotes; `None` if it is not a whole one.
pub fn unquote(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('`') {
        let raw = raw.strip_suffix('`')?;
        return (!raw.contains('`')).then(|| raw.replace('\r', ""));
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut bytes = Vec::new();
    while let Some(letter) = rest.next() {
        if matches!(letter, '"' | '\n') {
            return None;
        }
        if letter != '\\' {
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let code = |digits: &mut std::str::Chars<'_>, count: usize, radix: u32| {
            let mut value = 0_u32;
            for _ in 0..count {
                value = value.checked_mul(radix)?.checked_add(digits.next()?.to_digit(radix)?)?;
            }
            Some(value)
        };
        match rest.next()? {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            plain @ ('\\' | '"') => bytes.push(u8::try_from(plain).ok()?),
            'x' => bytes.push(u8::try_from(code(&mut rest, 2, 16)?).ok()?),
            wide @ ('u' | 'U') => {
                let value = code(&mut rest, if wide == 'u' { 4 } else { 8 }, 16)?;
                bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
            }
            first @ '0'..='7' => {
                let low = code(&mut rest, 2, 8)?;
                bytes.push(u8::try_from(first.to_digit(8)? * 64 + low).ok()?);
            }
            _ => return None,
        }
    }
    // JSON has no other bytes.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A piece of source in a message, cut where it is long.
pub(super) fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    words::cut(text, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_as_go_reads_them() {
        for (literal, text) in [
            (r#""""#, Some("")),
            (r#""a b""#, Some("a b")),
            (r#""\"\\\n\t\x41\101\u00e9\U0001F4A5""#, Some("\"\\\n\tAAé💥")),
            ("`a\\n\"`", Some("a\\n\"")),
            (r#"""#, None),
            (r#""a"b""#, None),
            (r#""\q""#, None),
            (r#""\u12""#, None),
            (r#""\400""#, None),
            (r#""\"#, None),
            ("a", None),
            ("`a`b`", None),
        ] {
            assert_eq!(unquote(literal).as_deref(), text, "{literal}");
        }
    }
}
