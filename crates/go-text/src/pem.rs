//! PEM blocks as Go's `encoding/pem` finds them.
//!
//! Source: Go 1.26 `encoding/pem/pem.go`.

use super::base64::{Alphabet, decode as decode_base64};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What stands behind `BEGIN`.
    pub kind: Vec<u8>,
    /// Whether there are headers.
    pub has_headers: bool,
    /// What the block holds.
    pub bytes: Vec<u8>,
}

/// `pem.Decode`: the first block, and what stands behind it; `None` if there is no whole one.
pub fn decode(data: &[u8]) -> Option<(Block, &[u8])> {
    let mut rest = data;
    loop {
        let end = find(rest, END)?;
        let after = end + END.len();
        // Of several beginnings the last one counts.
        if let Some(begin) =
            find_last(&rest[..end], BEGIN).filter(|begin| *begin == 0 || rest[begin - 1] == b'\n')
            && let Some(found) = block(&rest[begin + BEGIN.len()..], end.checked_sub(begin + BEGIN.len()))
        {
            return Some(found);
        }
        rest = &rest[after..];
    }
}

/// The block whose type begins here and whose last line begins at `end`.
fn block(text: &[u8], end: Option<usize>) -> Option<(Block, &[u8])> {
    let end = end?;
    let (first, mut body, mut at) = line(text);
    let kind = first.strip_suffix(DASHES)?;
    let mut has_headers = false;
    loop {
        if body.is_empty() {
            return None;
        }
        let (header, next, length) = line(body);
        if !header.contains(&b':') {
            break;
        }
        has_headers = true;
        (body, at) = (next, at + length);
    }
    if has_headers && end < at {
        return None;
    }
    // An empty block has no line end of its own before its last line.
    let trailer = text.get(end + END.len()..)?;
    let behind = trailer.strip_prefix(kind)?.strip_prefix(DASHES)?;
    let (left, rest, _) = line(behind);
    if !left.is_empty() {
        return None;
    }
    let encoded: Vec<u8> = match end.checked_sub(at) {
        Some(length) => body[..length].iter().copied().filter(|byte| !matches!(byte, b' ' | b'\t')).collect(),
        None => Vec::new(),
    };
    let bytes = decode_base64(&encoded, Alphabet::Standard)?;
    Some((Block { kind: kind.to_vec(), has_headers, bytes }, rest))
}

/// A line without what ends it, what follows it, and how long it is with its end.
fn line(data: &[u8]) -> (&[u8], &[u8], usize) {
    let (text, length) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (data[..end].strip_suffix(b"\r").unwrap_or(&data[..end]), end + 1),
        None => (data, data.len()),
    };
    let kept = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    (&text[..kept], &data[length..], length)
}

fn find(data: &[u8], part: &[u8]) -> Option<usize> {
    data.windows(part.len()).position(|window| window == part)
}

fn find_last(data: &[u8], part: &[u8]) -> Option<usize> {
    data.windows(part.len()).rposition(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<(String, bool, String)> {
        let (block, rest) = decode(text.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((format!("{}={}", text(&block.kind), text(&block.bytes)), block.has_headers, text(rest)))
    }

    #[test]
    fn blocks_are_whole_lines_of_their_own() {
        let found = |kind: &str, headers, rest: &str| Some((kind.to_owned(), headers, rest.to_owned()));
        let cases = [
            ("-----BEGIN A-----\nYWJj\n-----END A-----\n", found("A=abc", false, "")),
            (
                "# first\n-----BEGIN A-----\r\nYW Jj\r\n-----END A-----  \r\nrest",
                found("A=abc", false, "rest"),
            ),
            ("-----BEGIN A-----\nB: c\n\nYWJj\n-----END A-----", found("A=abc", true, "")),
            ("-----BEGIN A-----\n-----END A-----", found("A=", false, "")),
            ("-----BEGIN A-----\n-----BEGIN B-----\nYWJj\n-----END B-----", found("B=abc", false, "")),
            (" -----BEGIN A-----\nYWJj\n-----END A-----", None),
            ("-----BEGIN A-----\nYWJj\n-----END B-----", None),
            ("-----BEGIN A-----\nYWJ\n-----END A-----", None),
            ("-----BEGIN A-----\nYWJj\n-----END A-----x", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
