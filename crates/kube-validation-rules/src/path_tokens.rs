//! The parts of a field path as CRDs write it (`.spec['my.key']`): of the `fieldPath` of rules and of
//! selectable fields.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `ValidFieldPath`.

/// The delimiters `.`, `[` and `]`, quoted texts with their quotes, and the names between them, of the text
/// that it holds.
#[derive(Clone, Debug)]
pub struct PathTokens<'p>(pub &'p str);

impl<'p> Iterator for PathTokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let text = self.0;
        if text.is_empty() {
            return None;
        }
        let end = if text.starts_with('\'') {
            let bytes = text.as_bytes();
            let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
            close.map_or(text.len(), |close| close + 1)
        } else {
            match text.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(end) => end,
                None => text.len(),
            }
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

/// The content of a quoted text, given without its quotes; `None` if it has an escape that the server does
/// not know.
pub fn unquote(text: &str) -> Option<String> {
    let mut unquoted = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            unquoted.push(character);
            continue;
        }
        unquoted.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(_) => return None,
        });
    }
    Some(unquoted)
}
