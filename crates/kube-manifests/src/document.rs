//! One document of a file: its content, its place, and the pieces that readers hand over.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use kube_structural_schema::json::Json;
use serde_json::Value;

/// One document, and where it is from.
#[derive(Debug)]
pub struct Document {
    /// Where it stands.
    pub origin: Origin,
    /// Its content.
    pub json: Json,
    /// The keys that occur again in it. The last value counts, as for kubectl.
    pub duplicates: Vec<DuplicateKey>,
    /// Where it was read.
    pub(crate) source: Source,
}

/// The text that a document was read from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The whole file.
    pub(crate) file: Arc<str>,
    /// Where in it a part of YAML is; all of it in a file of JSON.
    pub(crate) part: Range<usize>,
    /// How many lines of the file are before it.
    pub(crate) lines: usize,
    /// Which document of the text it is, counted from 1.
    pub(crate) document: usize,
}

impl Source {
    /// The part.
    pub(crate) fn text(&self) -> &str {
        &self.file[self.part.clone()]
    }
}

/// A key that its mapping has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The place in the document.
    pub place: Vec<At>,
    /// The line of the file, counted from 1; `None` if it is not known.
    pub line: Option<usize>,
    /// Whether the key before it is the same as text alone, as `"1"` and `1` are: kubectl takes the value of
    /// either.
    pub is_other_type: bool,
}

/// The place of a document, for messages: `crds.yaml, document 3, item 12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file as it was named or found; `stdin` for `-`.
    pub file: Arc<str>,
    /// Which document of the file it is, counted from 1.
    pub document: usize,
    /// Which item of that document's list it is, counted from 1; `None` if it is not in a list.
    pub item: Option<usize>,
}

/// One step down from a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// A field.
    Field(String),
    /// An item, counted from 0.
    Item(usize),
}

/// What a file is made of: documents, and items of lists.
pub(crate) struct Piece {
    /// The content; of a list without its items, if these were pieces of their own.
    pub(crate) json: Json,
    /// Which item it is, counted from 1; none for a whole document.
    pub(crate) item: Option<usize>,
    pub(crate) duplicates: Vec<DuplicateKey>,
    /// Whether it is nested more than [`DEPTH`](kube_structural_schema::json::DEPTH) levels deep, and has
    /// null for what is beyond.
    pub(crate) is_too_deep: bool,
}

pub(crate) type Found<'a> = dyn FnMut(Piece) -> ControlFlow<()> + 'a;

/// Hands over a document; the items of a list one by one.
pub(crate) fn hand_over(
    mut document: Json,
    mut duplicates: Vec<DuplicateKey>,
    is_too_deep: bool,
    found: &mut Found<'_>,
) -> ControlFlow<()> {
    if !is_too_deep
        && is_list(&document)
        && let Some(Value::Array(items)) = document.get_mut("items")
    {
        let items = std::mem::take(items);
        let kind = ItemType::of(&document);
        for (index, mut item) in items.into_iter().enumerate() {
            kind.complete(&mut item);
            let prefix = [At::Field("items".to_owned()), At::Item(index)];
            let inside = duplicates.extract_if(.., |key| key.place.starts_with(&prefix));
            let inside = inside.map(|key| DuplicateKey { place: key.place[2..].to_vec(), ..key });
            let inside = inside.collect();
            found(Piece { json: item.into(), item: Some(index + 1), duplicates: inside, is_too_deep })?;
        }
    }
    found(Piece { json: document, item: None, duplicates, is_too_deep })
}

/// What the items of a list are. The API server leaves it out of the items where it answers with a list of a
/// built-in type, such as CRDs, and kubectl supplies it.
#[derive(Default)]
pub(crate) struct ItemType {
    /// `apiVersion` and `kind`; `None` if the list lacks one of them, or is one of any type.
    named: Option<(String, String)>,
}

impl ItemType {
    /// By the fields of a list.
    pub(crate) fn of(list: &Value) -> Self {
        let text = |field| list.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = text("kind").and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
        let named = text("apiVersion").zip(kind);
        Self { named: named.map(|(version, kind)| (version.to_owned(), kind.to_owned())) }
    }

    /// Names the type of an item that has none.
    pub(crate) fn complete(&self, item: &mut Value) {
        if let (Some((version, kind)), Value::Object(fields)) = (&self.named, item)
            && !["apiVersion", "kind"].iter().any(|field| fields.contains_key(*field))
        {
            fields.insert("apiVersion".to_owned(), version.as_str().into());
            fields.insert("kind".to_owned(), kind.as_str().into());
        }
    }
}

/// Whether a document is a list of objects.
pub(crate) fn is_list(document: &Value) -> bool {
    document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && document.get("items").is_some()
}

/// Whether a document is empty: null, `{}`, or a list, whose items have been handed over.
pub(crate) fn is_blank(document: &Value) -> bool {
    document.is_null() || document.as_object().is_some_and(serde_json::Map::is_empty) || is_list(document)
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

    /// Whether the document is a CRD, of whatever `apiVersion`: where that is missing or misspelt, it is one
    /// that kubectl refuses.
    pub fn is_crd(&self) -> bool {
        self.kind() == "CustomResourceDefinition"
    }

    /// Whether the document is a part of a CRD, such as a patch of kustomize: it changes something of the CRD
    /// that it names, and has neither the CRD's group nor its plural.
    pub fn is_part_of_crd(&self) -> bool {
        let changes = match self.json.get("spec") {
            Some(spec) => {
                let is_there = |pointer| spec.pointer(pointer).is_some();
                spec.as_object().is_some_and(|spec| !spec.is_empty())
                    && !["/group", "/names/plural"].into_iter().any(is_there)
            }
            None => {
                let metadata = &self.json["metadata"];
                ["annotations", "labels"].iter().any(|field| metadata[*field].is_object())
                    || self.json.get("$patch").is_some()
            }
        };
        self.is_crd() && changes
    }

    /// Whether the document is for kustomize only: a kustomization, its configuration, or a JSON patch.
    pub fn is_for_kustomize(&self) -> bool {
        const FILES: [&str; 4] =
            ["kustomization.yaml", "kustomization.yml", "kustomizeconfig.yaml", "kustomizeconfig.yml"];
        let name = self.origin.file.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_operation = |item: &Value| ["op", "path"].iter().all(|field| item[*field].is_string());
        let is_patch = || match &*self.json {
            Value::Array(items) => !items.is_empty() && items.iter().all(is_operation),
            _ => false,
        };
        match (self.api_version(), self.kind()) {
            ("", "") => FILES.contains(&name) || is_patch(),
            ("", kind) => ["Kustomization", "Component"].contains(&kind),
            (version, _) => version.starts_with("kustomize.config.k8s.io/"),
        }
    }

    /// What the document is, in words: its kind and API version, or that it is not a Kubernetes object.
    pub fn what(&self) -> String {
        if self.is_part_of_crd() {
            return "a part of a CustomResourceDefinition, such as a patch of kustomize".to_owned();
        }
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
