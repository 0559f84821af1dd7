//! CRDs and objects from files, folders and standard input: YAML and JSON, of many documents, and lists; Go
//! packages. It must not judge what it reads, and holds one document at a time.

mod budget;
mod embedded;
mod error;
mod files;
pub mod go;
mod json;
mod lines;
mod openapi;
mod scalar;
mod yaml;

use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use etch_core::crd::Crd;
use etch_core::object::Object;
use kube_structural_schema::json::Json;

use budget::Budget;
pub use embedded::{Embedded, EmbeddedError, embedded_schemas};
pub use error::{Reason, SourceError};
pub use lines::{At, line};
pub use openapi::{OpenApi, openapi};
pub use scalar::is_plain_text;

/// What one file may hold. Whatever is beyond is refused before it is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// One document, and where it is from.
#[derive(Debug)]
pub struct Document {
    /// Where it stands.
    pub origin: Origin,
    /// Its content.
    pub json: Json,
    /// The keys that occur again in it. The last value counts, as for kubectl.
    pub duplicates: Vec<DuplicateKey>,
}

/// A key that its mapping has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The place in the document.
    pub place: Vec<At>,
    /// The line of the file, counted from 1; none where it is not known.
    pub line: Option<usize>,
}

/// The place of a document, for messages: `crds.yaml, document 3, item 12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file as it was named or found; `stdin` for `-`.
    pub file: Arc<str>,
    /// Which document of the file it is, counted from 1.
    pub document: usize,
    /// Which item of that document's list it is, counted from 1; none where it is no list.
    pub item: Option<usize>,
}

/// Reads every document that the paths lead to, and hands it over together with the errors on the way, until
/// the visitor breaks off.
///
/// A folder stands for the `.yaml`, `.yml` and `.json` files in it and below, in the order of their names;
/// hidden ones and links to folders are passed over. `-` is `stdin`. The items of a list are documents of
/// their own. Documents that are null or empty are none. After an error the rest of that file is skipped.
pub fn each(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    visit: &mut dyn FnMut(Result<Document, SourceError>) -> ControlFlow<()>,
) {
    for path in paths {
        let flow = if path == Path::new("-") {
            file("stdin", Ok(stdin), visit)
        } else {
            files::below(path, &mut |found| match found {
                Ok(path) => {
                    let name = path.to_string_lossy();
                    match files::open(path) {
                        Ok(mut opened) => file(&name, Ok(&mut opened), visit),
                        Err(reason) => file(&name, Err(reason), visit),
                    }
                }
                Err(error) => visit(Err(error)),
            })
        };
        if flow.is_break() {
            return;
        }
    }
}

/// All documents that the paths lead to; see [`each`].
///
/// # Errors
/// The first one.
pub fn documents(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Document>, SourceError> {
    let mut found = Ok(Vec::new());
    each(paths, stdin, &mut |document| {
        match (document, &mut found) {
            (Ok(document), Ok(documents)) => documents.push(document),
            (Err(error), _) => {
                found = Err(error);
                return ControlFlow::Break(());
            }
            (Ok(_), Err(_)) => {}
        }
        ControlFlow::Continue(())
    });
    found
}

/// Reads one file.
fn file(
    name: &str,
    reader: Result<&mut dyn Read, Reason>,
    visit: &mut dyn FnMut(Result<Document, SourceError>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let name: Arc<str> = name.into();
    let mut origin = Origin { file: name.clone(), document: 0, item: None };
    let mut flow = ControlFlow::Continue(());
    let mut budget = Budget::default();
    let result = reader.and_then(text).and_then(|text| {
        let mut found = |piece: Piece| {
            match piece {
                Piece::Item(item, ..) if item.is_null() => return ControlFlow::Continue(()),
                Piece::Item(json, number, duplicates) => {
                    let origin =
                        Origin { file: name.clone(), document: origin.document + 1, item: Some(number) };
                    flow = visit(Ok(Document { origin, json, duplicates }));
                }
                Piece::Document(json, duplicates) => {
                    origin.document += 1;
                    if !is_blank(&json) {
                        flow = visit(Ok(Document { origin: origin.clone(), json, duplicates }));
                    }
                }
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
            Reason::Yaml { .. } | Reason::Json(_) => template(&text).unwrap_or(reason),
            reason => reason,
        })
    });
    match result {
        Ok(()) => flow,
        Err(reason) => {
            origin.document += 1;
            visit(Err(SourceError { origin, reason }))
        }
    }
}

/// What a file is made of.
enum Piece {
    /// A whole document; a list without its items, if these were pieces of their own.
    Document(Json, Vec<DuplicateKey>),
    /// An item of a list, and its number in it, counted from 1.
    Item(Json, usize, Vec<DuplicateKey>),
}

type Found<'a> = dyn FnMut(Piece) -> ControlFlow<()> + 'a;

/// Hands over a document; the items of a list one by one.
fn hand_over(
    mut document: Json,
    mut duplicates: Vec<DuplicateKey>,
    found: &mut Found<'_>,
) -> ControlFlow<()> {
    if is_list(&document)
        && let Some(Value::Array(items)) = document.get_mut("items")
    {
        for (index, item) in std::mem::take(items).into_iter().enumerate() {
            let prefix = [At::Field("items".to_owned()), At::Item(index)];
            let inside = duplicates.extract_if(.., |key| key.place.starts_with(&prefix));
            let inside =
                inside.map(|DuplicateKey { place, line }| DuplicateKey { place: place[2..].to_vec(), line });
            let inside = inside.collect();
            found(Piece::Item(item.into(), index + 1, inside))?;
        }
    }
    found(Piece::Document(document, duplicates))
}

/// Why a text cannot be read, where that is what Helm has not rendered yet: an action in place of a line or
/// of a value. Inside of a text, as in a description, braces are no reason.
fn template(text: &str) -> Option<Reason> {
    let is_action = |line: &str| {
        let line = line.trim_start();
        let begins = line.starts_with("{{") || line.contains(": {{") || line.contains("- {{");
        begins && line.contains("}}")
    };
    text.lines().position(is_action).map(|index| Reason::Template { line: index + 1 })
}

fn is_list(document: &Value) -> bool {
    document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && document.get("items").is_some()
}

/// Whether a document is empty: null, `{}`, or a list, whose items have been handed over.
fn is_blank(document: &Value) -> bool {
    document.is_null() || document.as_object().is_some_and(serde_json::Map::is_empty) || is_list(document)
}

fn text(reader: &mut dyn Read) -> Result<String, Reason> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(Reason::Read)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Reason::TooLong);
    }
    decoded(bytes)
}

/// Text in UTF-8, or in UTF-16 after a byte order mark, as editors on Windows write it.
fn decoded(bytes: Vec<u8>) -> Result<String, Reason> {
    let text = match bytes.get(..2) {
        Some([0xff, 0xfe]) => utf_16(&bytes[2..], u16::from_le_bytes),
        Some([0xfe, 0xff]) => utf_16(&bytes[2..], u16::from_be_bytes),
        _ => None,
    };
    let text = if text.is_some() { text } else { String::from_utf8(bytes).ok() };
    let text = text.filter(|text| !text.contains('\0')).ok_or(Reason::Binary)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// Text from its units of two bytes each.
fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|pair| unit(*pair)).collect();
    if rest.is_empty() { String::from_utf16(&units).ok() } else { None }
}

impl Document {
    /// The `kind` of the document; empty where it has none.
    pub fn kind(&self) -> &str {
        self.json.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The `apiVersion` of the document; empty where it has none.
    pub fn api_version(&self) -> &str {
        self.json.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the document is a CRD, of whatever version.
    pub fn is_crd(&self) -> bool {
        self.kind() == "CustomResourceDefinition" && self.api_version().starts_with("apiextensions.k8s.io/")
    }

    /// Whether the document is a part of a CRD, such as a patch of kustomize: it changes something of the CRD
    /// that it names, and has neither the CRD's group nor its names.
    pub fn is_part_of_crd(&self) -> bool {
        let changes = match self.json.get("spec") {
            Some(spec) => spec.as_object().is_some_and(|spec| {
                !spec.is_empty() && !["group", "names"].iter().any(|field| spec.contains_key(*field))
            }),
            None => {
                let metadata = &self.json["metadata"];
                ["annotations", "labels"].iter().any(|field| metadata[*field].is_object())
                    || self.json.get("$patch").is_some()
            }
        };
        self.is_crd() && changes
    }

    /// The document as a CRD.
    ///
    /// # Errors
    /// It is none of `apiextensions.k8s.io/v1`, or cannot be read as one.
    pub fn crd(&self) -> Result<Crd, SourceError> {
        let reason = match self.kind() {
            _ if !self.is_crd() => Reason::NoCrd { found: self.what() },
            _ if self.api_version() != "apiextensions.k8s.io/v1" => Reason::OldCrd,
            _ => match Crd::read(&self.json) {
                Ok(crd) => return Ok(crd),
                Err(error) => Reason::Crd(error),
            },
        };
        Err(SourceError { origin: self.origin.clone(), reason })
    }

    /// The document as an object of any type.
    ///
    /// # Errors
    /// It lacks `apiVersion`, `kind` or `metadata.name`.
    pub fn into_object(self) -> Result<(Origin, Object), SourceError> {
        let is_named = |document: &Self| {
            let metadata = document.json.get("metadata");
            metadata.and_then(|metadata| metadata.get("name")).is_some_and(Value::is_string)
        };
        let missing = match &self {
            document if document.api_version().is_empty() => "apiVersion",
            document if document.kind().is_empty() => "kind",
            document if !is_named(document) => "metadata.name",
            _ => return Ok((self.origin, Object::from(self.json))),
        };
        Err(SourceError { origin: self.origin, reason: Reason::NoObject { missing } })
    }

    /// What the document is, in words: its kind and API version, or that it is no Kubernetes object.
    pub fn what(&self) -> String {
        match (self.kind(), self.api_version()) {
            ("", _) => "something without a kind".to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, version) => format!("{kind} of {version}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.document > 1 {
            write!(f, ", document {}", self.document)?;
        }
        if let Some(item) = self.item {
            write!(f, ", item {item}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
