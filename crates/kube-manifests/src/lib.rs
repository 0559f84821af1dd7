#![doc = include_str!("../README.md")]

mod budget;
mod document;
mod json;
mod lines;
mod malformed;
mod scalar;
mod writer;
mod yaml;

use std::ops::ControlFlow;
use std::sync::Arc;

use budget::Budget;
pub use document::{At, Document, DuplicateKey, Origin};
use document::{Piece, is_blank};
use kube_structural_schema::json::outline;
pub use malformed::Malformed;
pub use writer::write_document;

/// Reads every document of a file, and hands it over, or the error that ends the file, until the visitor
/// breaks off. [`Malformed::TooDeep`] is an error of one document, and ends nothing.
///
/// The items of a list are documents of their own. Documents that are null or empty are none.
pub fn read(
    name: &str,
    bytes: Vec<u8>,
    visit: &mut dyn FnMut(Result<Document, (Origin, Malformed)>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let name: Arc<str> = name.into();
    let mut origin = Origin { file: name.clone(), document: 0, item: None };
    let mut flow = ControlFlow::Continue(());
    let mut budget = Budget::default();
    let result = decoded(bytes).and_then(|text| {
        let text: Arc<str> = text.into();
        let mut found = |Piece { json, item, duplicates, is_too_deep }: Piece| {
            let is_nothing = match item {
                Some(_) => json.is_null(),
                None => is_blank(&json) && !is_too_deep,
            };
            let document = origin.document + 1;
            origin.document += usize::from(item.is_none());
            if !is_nothing {
                let origin = Origin { file: name.clone(), document, item };
                flow = visit(match is_too_deep {
                    true => Err((origin, Malformed::TooDeep(outline(&json.to_vec()).unwrap_or_default()))),
                    false => Ok(Document { origin, json, duplicates, text: text.clone() }),
                });
            }
            flow
        };
        // As kubectl guesses it.
        let parsed = if text.trim_start().starts_with('{') {
            json::parse(&text, &mut budget, &mut found)
        } else {
            yaml::parse(&text, &mut budget, &mut found)
        };
        parsed.map_err(|reason| match reason {
            Malformed::Yaml { .. } | Malformed::Json(_) => template(&text).unwrap_or(reason),
            reason => reason,
        })
    });
    match result {
        Ok(()) => flow,
        Err(reason) => {
            origin.document += 1;
            visit(Err((origin, reason)))
        }
    }
}

/// Why a text cannot be read, where that is what Helm has not rendered yet: an action in place of a line or
/// of a value. Braces inside a text, as in a description, do not count.
fn template(text: &str) -> Option<Malformed> {
    let is_action = |line: &str| {
        let line = line.trim_start();
        let begins = line.starts_with("{{") || line.contains(": {{") || line.contains("- {{");
        begins && line.contains("}}")
    };
    text.lines().position(is_action).map(|index| Malformed::Template { line: index + 1 })
}

/// Text in UTF-8, or in UTF-16 after a byte order mark, as editors on Windows write it.
///
/// # Errors
/// [`Malformed::Binary`].
pub fn decoded(bytes: Vec<u8>) -> Result<String, Malformed> {
    let text = match bytes.get(..2) {
        Some([0xff, 0xfe]) => utf_16(&bytes[2..], u16::from_le_bytes),
        Some([0xfe, 0xff]) => utf_16(&bytes[2..], u16::from_be_bytes),
        _ => None,
    };
    let text = if text.is_some() { text } else { String::from_utf8(bytes).ok() };
    let text = text.filter(|text| !text.contains('\0')).ok_or(Malformed::Binary)?;
    // kubectl reads each document for itself, so each may have a mark, as in files that were put together.
    Ok(match text.contains('\u{feff}') {
        true => text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\n\u{feff}", "\n"),
        false => text,
    })
}

/// Text from its units of two bytes each.
fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|pair| unit(*pair)).collect();
    if rest.is_empty() { String::from_utf16(&units).ok() } else { None }
}

#[cfg(test)]
mod tests;
