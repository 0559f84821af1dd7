//! Whether a text is exactly one mail address, as Go's `net/mail` reads it: RFC 5322, with or without a
//! display name.
//!
//! Source: Go 1.26 `net/mail/message.go` and `mime/encodedword.go`.

use std::net::IpAddr;

use super::base64::{Alphabet, decode as decode_base64};

/// Whether `mail.ParseAddress` takes the text.
pub fn is_address(text: &str) -> bool {
    let mut reader = Reader(text.as_bytes());
    reader.address(true) == Some(1) && reader.skip_comments() && reader.0.is_empty()
}

/// What is left to read. Bytes will do: everything special is ASCII, and every other character is as good as
/// a letter.
#[derive(Clone, Copy)]
struct Reader<'t>(&'t [u8]);

impl<'t> Reader<'t> {
    /// Reads one address, or a group where one may stand; returns how many addresses it has.
    fn address(&mut self, group_allowed: bool) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        if self.try_specification() {
            self.skip_space();
            if self.0.starts_with(b"(") {
                self.name_in_comment()?;
            }
            return Some(1);
        }
        if !self.0.starts_with(b"<") {
            self.phrase()?;
        }
        self.skip_space();
        if group_allowed && self.consume(b':') {
            return self.group();
        }
        (self.consume(b'<') && self.try_specification() && self.consume(b'>')).then_some(1)
    }

    /// The rest of `name: address, address;`.
    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.consume(b';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.skip_space();
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.consume(b';') {
                return self.skip_comments().then_some(count);
            }
            if !self.consume(b',') {
                return None;
            }
        }
    }

    /// Reads `local@domain`, or nothing.
    fn try_specification(&mut self) -> bool {
        let before = *self;
        let read = self.specification().is_some();
        if !read {
            *self = before;
        }
        read
    }

    fn specification(&mut self) -> Option<()> {
        self.skip_space();
        if self.0.starts_with(b"\"") {
            if self.quoted()? == 0 {
                return None;
            }
        } else {
            self.strict_atom()?;
        }
        if !self.consume(b'@') {
            return None;
        }
        self.skip_space();
        if self.consume(b'[') {
            let end = self.0.iter().position(|byte| *byte == b']')?;
            let (literal, rest) = self.0.split_at(end);
            self.0 = &rest[1..];
            std::str::from_utf8(literal).ok()?.parse::<IpAddr>().ok().map(|_| ())
        } else {
            self.strict_atom().map(|_| ())
        }
    }

    /// A display name: words, of which encoded ones run together.
    fn phrase(&mut self) -> Option<()> {
        let (mut words, mut encoded) = (0, false);
        let mut failed = false;
        loop {
            // Comments may stand between words, but not behind an encoded one.
            if words > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            if self.0.is_empty() {
                break;
            }
            let word = if self.0.starts_with(b"\"") {
                self.quoted().map(|_| Word::Plain)
            } else {
                self.atom().and_then(decode)
            };
            match word {
                None => {
                    failed = true;
                    break;
                }
                Some(Word::Encoded { empty }) => encoded |= !empty,
                Some(Word::Plain) => {
                    words += 1;
                    encoded = false;
                }
            }
        }
        (!failed || words > 0 || encoded).then_some(())
    }

    /// A quoted string; returns its length.
    fn quoted(&mut self) -> Option<usize> {
        let (mut length, mut escaped) = (0, false);
        for (index, byte) in self.0.iter().enumerate().skip(1) {
            match byte {
                b'"' if !escaped => {
                    self.0 = &self.0[index + 1..];
                    return Some(length);
                }
                b'\\' if !escaped => escaped = true,
                b' ' | b'\t' | b'!'..=b'~' | 0x80.. => {
                    escaped = false;
                    length += 1;
                }
                _ => return None,
            }
        }
        None
    }

    fn strict_atom(&mut self) -> Option<&'t [u8]> {
        let atom = self.atom()?;
        let dots =
            atom.starts_with(b".") || atom.ends_with(b".") || atom.windows(2).any(|pair| pair == b"..");
        (!dots).then_some(atom)
    }

    fn atom(&mut self) -> Option<&'t [u8]> {
        let special = |byte: &u8| matches!(byte, 0..=b' ' | 0x7F) || b"()<>[]:;@\\,\"".contains(byte);
        let end = self.0.iter().position(special).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// A display name the old way, in a comment behind the address.
    fn name_in_comment(&mut self) -> Option<()> {
        self.consume(b'(');
        let comment = self.comment()?;
        let mut words = comment.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        words.all(|word| decode(word).is_some()).then_some(())
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.consume(b'(') {
            if self.comment().is_none() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The text of a comment whose first parenthesis has been read.
    fn comment(&mut self) -> Option<Vec<u8>> {
        let mut depth = 1;
        let mut text = Vec::new();
        while let [first, rest @ ..] = self.0 {
            let (byte, rest) = match (first, rest) {
                (b'\\', [escaped, rest @ ..]) => (escaped, rest),
                _ => (first, rest),
            };
            match first {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            self.0 = rest;
            if depth == 0 {
                return Some(text);
            }
            text.push(*byte);
        }
        None
    }

    fn skip_space(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    fn consume(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }
}

/// What a word of a display name is.
enum Word {
    Plain,
    /// An encoded word of RFC 2047.
    Encoded {
        empty: bool,
    },
}

/// Nothing for an encoded word of a charset that Go does not know; a malformed one is just text.
fn decode(word: &[u8]) -> Option<Word> {
    let marks = word.iter().filter(|byte| **byte == b'?').count();
    let inner = word.strip_prefix(b"=?").and_then(|rest| rest.strip_suffix(b"?="));
    let Some(inner) = inner.filter(|_| word.len() >= 8 && marks == 4) else { return Some(Word::Plain) };
    let mut parts = inner.split(|byte| *byte == b'?');
    let (Some(charset), Some(&[encoding]), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return Some(Word::Plain);
    };
    let decodes = match encoding {
        b'B' | b'b' => decode_base64(text, Alphabet::Standard).is_some(),
        b'Q' | b'q' => is_quoted_printable(text),
        _ => false,
    };
    if charset.is_empty() || !decodes {
        return Some(Word::Plain);
    }
    // Go compares without case by Unicode, in which the long s is an s.
    let charset = String::from_utf8_lossy(charset).replace('ſ', "s").to_ascii_lowercase();
    let known = matches!(charset.as_str(), "utf-8" | "iso-8859-1" | "us-ascii");
    known.then_some(Word::Encoded { empty: text.is_empty() })
}

fn is_quoted_printable(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'=' => {
                let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
                digit(bytes.next()) && digit(bytes.next())
            }
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => true,
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    true
}
