#![doc = include_str!("../README.md")]

mod budget;
mod document;
mod indentation;
mod json;
mod lines;
mod malformed;
mod parts;
mod scalar;
mod writer;
mod yaml;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use document::{At, Document, DuplicateKey, Origin};
use document::{Piece, Source, is_blank, is_list};
use kube_structural_schema::json::outline;
pub use lines::Lines;
pub use malformed::Malformed;
use parts::parts;
pub use writer::write_document;

/// Reads every document of a file, and hands it over, or the error that ends the file, until the visitor
/// breaks off. [`Malformed::TooDeep`], [`Malformed::ListInList`], [`Malformed::NoObject`] and
/// [`Malformed::NoItems`] are errors of one document, and end nothing.
///
/// The items of a list are documents of their own. Documents that are null or empty are none.
pub fn read(
    name: &str,
    bytes: Vec<u8>,
    visit: &mut dyn FnMut(Result<Document, (Origin, Malformed)>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let origin = Origin { file: name.into(), document: 0, item: None };
    let mut reading = Reading { origin, visit, flow: ControlFlow::Continue(()) };
    match decoded(bytes).and_then(|text| reading.text(&text.into())) {
        Ok(()) => reading.flow,
        Err(reason) => {
            reading.origin.document += 1;
            (reading.visit)(Err((reading.origin, reason)))
        }
    }
}

struct Reading<'v> {
    /// Of the document that was read last.
    origin: Origin,
    visit: &'v mut dyn FnMut(Result<Document, (Origin, Malformed)>) -> ControlFlow<()>,
    flow: ControlFlow<()>,
}

impl Reading<'_> {
    /// Reads a text as JSON or YAML, as kubectl guesses it: as JSON for as long as it is that, and if that is
    /// not more than one document, as YAML from there on.
    fn text(&mut self, text: &Arc<str>) -> Result<(), Malformed> {
        let template = |reason| match reason {
            Malformed::Yaml { .. } | Malformed::Json(_) => template(text).unwrap_or(reason),
            reason => reason,
        };
        if !text.trim_start().starts_with('{') {
            return self.yaml(text, 0, 0).map_err(template);
        }
        // A large file is held once.
        let file: Arc<str> = match json::with_pairs(text) {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(pairs) => pairs.into(),
        };
        let extent = json::extent(&file);
        let rest = &file[extent.end..];
        // Where kubectl looks further, it asks for four bytes.
        let next = rest.trim_start_matches(|space: char| space.is_whitespace() && space != '\n');
        let is_read = next.len() >= 4 && !next.starts_with(char::REPLACEMENT_CHARACTER);
        let error = match extent.error {
            Some(error) if is_read && extent.documents <= 1 => error,
            _ => return self.json(&file, file.len()).map_err(template),
        };
        self.json(&file, extent.end)?;
        if self.flow.is_break() {
            return Ok(());
        }
        let first = self.origin.document;
        let lines = file[..extent.end].matches('\n').count();
        self.yaml(text, extent.end, lines).map_err(|reason| match reason {
            Malformed::Yaml { .. } | Malformed::Endless
                if self.origin.document == first && next.trim_start().starts_with('{') =>
            {
                template(error)
            }
            reason => template(reason),
        })
    }

    /// Reads JSON up to a byte.
    fn json(&mut self, file: &Arc<str>, end: usize) -> Result<(), Malformed> {
        json::parse(&file[..end], &mut |piece| {
            let document = self.origin.document + 1;
            self.found(piece, Source { file: file.clone(), part: 0..end, lines: 0, document })
        })
    }

    /// Reads YAML from a byte on that so many lines are before.
    fn yaml(&mut self, text: &Arc<str>, start: usize, lines: usize) -> Result<(), Malformed> {
        let mut before = self.origin.document;
        for part in parts(&text[start..]) {
            let mut part = part?;
            part.lines += lines;
            if part.separators > 0 {
                self.origin.document = before + part.separators - 1;
            }
            let (at, part_lines) = (start + part.at, part.lines);
            let range = at..at + part.text.len();
            yaml::parse(&part, &mut |piece| {
                let (file, part) = (text.clone(), range.clone());
                self.found(piece, Source { file, part, lines: part_lines, document: 1 })
            })?;
            if self.flow.is_break() {
                break;
            }
            if part.separators == 0 {
                before = self.origin.document;
            }
        }
        Ok(())
    }

    fn found(&mut self, piece: Piece, source: Source) -> ControlFlow<()> {
        let Piece { json, item, duplicates, is_too_deep } = piece;
        let refused = match (item, json.get("items")) {
            _ if is_too_deep => Some(Malformed::TooDeep(outline(&json.to_vec()).unwrap_or_default())),
            (Some(_), _) if !json.is_object() => Some(Malformed::NoObject),
            (Some(_), Some(items)) if items.is_array() => Some(Malformed::ListInList),
            (None, Some(items)) if is_list(&json) && !items.is_array() => Some(Malformed::NoItems),
            (None, None) if json["apiVersion"] == "v1" && json["kind"] == "List" => Some(Malformed::NoItems),
            _ => None,
        };
        let is_nothing = refused.is_none() && item.is_none() && is_blank(&json);
        let document = self.origin.document + 1;
        self.origin.document += usize::from(item.is_none());
        if !is_nothing {
            let origin = Origin { document, item, ..self.origin.clone() };
            self.flow = (self.visit)(match refused {
                Some(reason) => Err((origin, reason)),
                None => Ok(Document { origin, json, duplicates, source }),
            });
        }
        self.flow
    }
}

/// Why a text cannot be read, where that is what Helm has not rendered yet: an action in place of a line or
/// of a value. Braces inside a text, as in a description, do not count.
fn template(text: &str) -> Option<Malformed> {
    let is_action = |line: &str| {
        let line = line.trim_start();
        // A comment goes on over lines.
        line.starts_with("{{") || (line.contains(": {{") || line.contains("- {{")) && line.contains("}}")
    };
    text.lines().position(is_action).map(|index| Malformed::Template { line: index + 1 })
}

/// Text in UTF-8, or in UTF-16 after a byte order mark, as editors on Windows write it. What is neither
/// becomes replacement characters, as for kubectl: a comment in Latin-1 harms nothing.
///
/// # Errors
/// [`Malformed::Binary`]: there is a zero in it, as in images, and in UTF-16 without a mark.
pub fn decoded(bytes: Vec<u8>) -> Result<String, Malformed> {
    let text = match bytes.get(..2) {
        Some([0xff, 0xfe]) => utf_16(&bytes[2..], u16::from_le_bytes),
        Some([0xfe, 0xff]) => utf_16(&bytes[2..], u16::from_be_bytes),
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    if text.contains('\0') {
        return Err(Malformed::Binary);
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Text from its units of two bytes each.
fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, rest) = bytes.as_chunks::<2>();
    let characters = char::decode_utf16(units.iter().map(|pair| unit(*pair)));
    let characters = characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
    characters.chain(rest.iter().map(|_| char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests;
