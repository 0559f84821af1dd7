//! Documents of YAML, composed into JSON as kubectl does it. Each copy that an alias expands to counts
//! against the budget, and a value that another of the same key replaces is noted.
//!
//! Source: go.yaml.in/yaml/v2 `decode.go`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::{Discriminant, discriminant};
use std::ops::{ControlFlow, Range};

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, StructureStyle, Tag};
use serde_json::{Map, Value};

use super::budget::Budget;
use super::indentation::refused_tab;
use super::json::begins_list;
use super::parts::Part;
use super::scalar::{Scalar, is_anchor, resolve};
use crate::document::{At, DuplicateKey, Found, ItemType, Piece, hand_over};
use crate::malformed::{Malformed, OPEN};
use kube_structural_schema::json::{DEPTH, Json};

/// Reads the document of a part. kubectl parses nothing behind its end.
pub(super) fn parse(part: &Part<'_>, found: &mut Found<'_>) -> Result<(), Malformed> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.disallow_directives = true;
    options.emit_anchor_events = true;
    options.flow_nesting_limit = OPEN;
    options.block_nesting_limit = OPEN;
    let mut composer = Composer {
        budget: Budget::default(),
        found,
        frames: Vec::new(),
        anchors: HashMap::new(),
        line: 0,
        duplicates: Vec::new(),
        skipped: 0,
        is_too_deep: false,
    };
    // Each part may have a mark, as in files that were put together.
    let text = part.text.strip_prefix('\u{feff}').unwrap_or(part.text);
    if let Some(line) = refused_tab(text, &options) {
        let problem = "kubectl refuses a tab in the white space that a line begins with: write spaces";
        return Err(Malformed::Yaml { line: part.lines + line, problem: problem.to_owned() });
    }
    // How many brackets are open.
    let mut flow = 0_usize;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let line = part.lines + error.marker().line();
            match error.kind() {
                ErrorKind::RecursionLimitExceeded => Malformed::Endless,
                ErrorKind::DirectiveDisallowed => {
                    Malformed::Yaml { line, problem: "kubectl refuses directives such as %YAML".to_owned() }
                }
                _ => Malformed::Yaml { line, problem: error.info() },
            }
        })?;
        composer.line = part.lines + span.start.line();
        flow = match event {
            Event::SequenceStart(style, ..) | Event::MappingStart(style, ..)
                if flow > 0 || style == StructureStyle::Flow =>
            {
                flow + 1
            }
            Event::SequenceEnd | Event::MappingEnd => flow.saturating_sub(1),
            _ => flow,
        };
        let event = match event {
            Event::DocumentEnd => break,
            Event::Anchor(_, name) if is_anchor(&name) => continue,
            Event::Anchor(..) => {
                let problem = "kubectl refuses this name of an anchor: use letters of ASCII, digits, - and _";
                Err(Failure::Wrong(problem.to_owned()))
            }
            Event::Scalar(_, ScalarStyle::DoubleQuoted, ..) => {
                escapes(span.slice(text).unwrap_or_default()).map(|()| event)
            }
            Event::Scalar(_, ScalarStyle::Plain, ..)
                if flow > 0 && span.byte_range().is_some_and(|range| is_cut(text, range)) =>
            {
                // As YAML 1.1 has it, such a text ends or continues elsewhere.
                let problem = "kubectl reads a ? or : next to this text otherwise: put the text in quotes, \
                    with a space behind a colon";
                Err(Failure::Wrong(problem.to_owned()))
            }
            Event::Scalar(ref text, ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded, ..)
                if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) =>
            {
                // In YAML 1.1 the next line begins there.
                let problem = "kubectl takes the invisible character U+0085, U+2028 or U+2029 in it for the \
                    end of a line: remove it";
                Err(Failure::Wrong(problem.to_owned()))
            }
            event => Ok(event),
        };
        let flow = event.and_then(|event| composer.event(event)).map_err(|error| match error {
            Failure::Exceeded(reason) => reason,
            Failure::Wrong(problem) => Malformed::Yaml { line: composer.line, problem },
        })?;
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

/// Whether kubectl ends a plain scalar in brackets elsewhere: a `?` in it is a mark of its own, and so is a
/// `:` before it, while a `:` right before the next mark belongs to the scalar.
///
/// Source: go.yaml.in/yaml/v2 `scannerc.go`, `yaml_parser_fetch_next_token` and
/// `yaml_parser_scan_plain_scalar`.
fn is_cut(text: &str, range: Range<usize>) -> bool {
    let (Some(scalar), Some(behind)) = (text.get(range.clone()), text.get(range.end..)) else { return false };
    let is_key = behind.strip_prefix(':').is_some_and(|value| value.starts_with([',', ']', '}']));
    // A null that is not written has no place of its own.
    !scalar.is_empty() && (scalar.contains('?') || scalar.starts_with(':') || is_key)
}

/// What JSON and YAML 1.2 may write after a backslash, and YAML 1.1 may not: `\/`, and half of a pair.
fn escapes(quoted: &str) -> Result<(), Failure> {
    let mut rest = quoted;
    while let Some((_, escape)) = rest.split_once('\\') {
        let is_half = escape
            .strip_prefix('u')
            .and_then(|code| code.get(..4))
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .is_some_and(|code| char::from_u32(code).is_none());
        if is_half || escape.starts_with('/') {
            let problem = "kubectl refuses this escape in YAML: write the character itself";
            return Err(Failure::Wrong(problem.to_owned()));
        }
        let mut characters = escape.chars();
        characters.next();
        rest = characters.as_str();
    }
    Ok(())
}

/// Why a document cannot be composed.
enum Failure {
    Wrong(String),
    Exceeded(Malformed),
}

impl From<Malformed> for Failure {
    fn from(reason: Malformed) -> Self {
        Self::Exceeded(reason)
    }
}

impl From<&str> for Failure {
    fn from(problem: &str) -> Self {
        Self::Wrong(problem.to_owned())
    }
}

type Flow = Result<ControlFlow<()>, Failure>;

const NAMESPACE: &str = "tag:yaml.org,2002:";
const NO_SCALAR: &str = "a key is not a scalar";
const NO_MAPPING: &str = "`<<` merges something other than a mapping";
const GO_ON: Flow = Ok(ControlFlow::Continue(()));

struct Composer<'a, 'f> {
    budget: Budget,
    found: &'a mut Found<'f>,
    /// From the document to the part that is being composed.
    frames: Vec<Frame>,
    /// What aliases stand for.
    anchors: HashMap<usize, Anchored>,
    /// Where the event that is processed begins.
    line: usize,
    /// The keys that occurred before, in what is to be handed over next.
    duplicates: Vec<DuplicateKey>,
    /// How many lists and mappings are open that are too deep to be composed.
    skipped: usize,
    /// Whether there was one in what is to be handed over next.
    is_too_deep: bool,
}

/// What aliases stand for.
struct Anchored {
    node: Node,
    /// What a copy costs.
    cost: usize,
    /// How many levels it has.
    depth: usize,
}

enum Node {
    /// It may be a key, and have no form as a value.
    Scalar(Scalar),
    Collection(Json),
}

/// A list or a mapping that has not ended yet.
struct Frame {
    holder: Holder,
    anchor: usize,
    /// What was left when it began.
    left: usize,
    /// How many levels are in it, so far.
    depth: usize,
}

enum Holder {
    List {
        items: Vec<Json>,
        handed_over: usize,
    },
    Mapping {
        fields: Json,
        /// The fields of `<<` that the mapping itself has not.
        merged: BTreeSet<String>,
        /// The keys that are no texts, with what they are.
        typed: BTreeMap<String, Discriminant<Scalar>>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    /// `<<`
    Merge,
}

impl Composer<'_, '_> {
    fn event(&mut self, event: Event<'_>) -> Flow {
        if self.skipped > 0 {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => self.skipped += 1,
                Event::SequenceEnd | Event::MappingEnd => self.skipped -= 1,
                _ => {}
            }
            return match self.skipped {
                0 => self.place(Json::default(), 0, self.budget.left(), 0),
                _ => GO_ON,
            };
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = scalar(&text, style, tag.as_deref()).map_err(Failure::Wrong)?;
                let left = self.budget.left();
                if anchor != 0 {
                    self.budget.scalar(text.len())?;
                    let node = Node::Scalar(scalar.clone());
                    self.anchors.insert(anchor, Anchored { node, cost: left - self.budget.left(), depth: 0 });
                }
                match self.missing_key() {
                    Some(key) if is_merge(&text, style, tag.as_deref()) => {
                        *key = Some(Key::Merge);
                        GO_ON
                    }
                    Some(_) => self.name(scalar),
                    None => {
                        self.budget.scalar(text.len())?;
                        self.place(scalar.into_value()?.into(), 0, left, 0)
                    }
                }
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(Holder::List { items: Vec::new(), handed_over: 0 }, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                let fields = Json::from(Value::Object(Map::new()));
                self.begin(
                    Holder::Mapping { fields, merged: BTreeSet::new(), typed: BTreeMap::new(), key: None },
                    anchor,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Frame { holder, anchor, left, depth }) = self.frames.pop() else { return GO_ON };
                let value = match holder {
                    Holder::List { items, .. } => {
                        Value::Array(items.into_iter().map(Json::into_inner).collect()).into()
                    }
                    Holder::Mapping { fields, .. } => fields,
                };
                self.place(value, anchor, left, depth + 1)
            }
            Event::Alias(anchor) => self.alias(anchor),
            _ => GO_ON,
        }
    }

    fn alias(&mut self, anchor: usize) -> Flow {
        let left = self.budget.left();
        let Some(Anchored { node, cost, depth }) = self.anchors.get(&anchor) else {
            // It may be one of what was skipped.
            return match self.is_too_deep {
                true => self.place(Json::default(), 0, left, 0),
                false => Err("an alias inside the value that it refers to".into()),
            };
        };
        let (cost, depth) = (*cost, *depth);
        let value = match (node, self.frames.last().map(|frame| &frame.holder)) {
            (Node::Scalar(scalar), Some(Holder::Mapping { key: None, .. })) => {
                let scalar = scalar.clone();
                return self.name(scalar);
            }
            (_, Some(Holder::Mapping { key: None, .. })) => return Err(NO_SCALAR.into()),
            (Node::Collection(value), Some(Holder::Mapping { key: Some(Key::Merge), .. }))
                if !value.is_object() =>
            {
                return Err(NO_MAPPING.into());
            }
            (Node::Collection(_), _) if self.depth() + depth > DEPTH => {
                self.is_too_deep = true;
                return self.place(Json::default(), 0, left, 0);
            }
            (node, _) => {
                self.budget.take(cost)?;
                match node {
                    Node::Scalar(scalar) => scalar.clone().into_value()?.into(),
                    Node::Collection(value) => value.clone(),
                }
            }
        };
        self.place(value, 0, left, depth)
    }

    /// The place of the key that the mapping lacks which is being composed.
    fn missing_key(&mut self) -> Option<&mut Option<Key>> {
        match self.frames.last_mut().map(|frame| &mut frame.holder) {
            Some(Holder::Mapping { key: key @ None, .. }) => Some(key),
            _ => None,
        }
    }

    /// Takes a scalar for the key of the value that comes next.
    fn name(&mut self, scalar: Scalar) -> Flow {
        let own_type = (!matches!(scalar, Scalar::Text(_))).then(|| discriminant(&scalar));
        let name = scalar.into_key()?;
        let Some(Holder::Mapping { fields, merged, typed, key }) =
            self.frames.last_mut().map(|frame| &mut frame.holder)
        else {
            return GO_ON;
        };
        *key = Some(Key::Name(name.clone()));
        let is_there =
            !merged.remove(&name) && fields.as_object().is_some_and(|fields| fields.contains_key(&name));
        let is_other_type = typed.get(&name).copied() != own_type;
        typed.extend(own_type.map(|own_type| (name.clone(), own_type)));
        if is_there {
            self.note_duplicate(name, is_other_type);
        }
        GO_ON
    }

    fn begin(&mut self, holder: Holder, anchor: usize) -> Flow {
        if let Some(Holder::Mapping { key: None, .. }) = self.frames.last().map(|frame| &frame.holder) {
            return Err(NO_SCALAR.into());
        }
        if self.depth() == DEPTH {
            self.is_too_deep = true;
            self.skipped = 1;
            return GO_ON;
        }
        self.frames.push(Frame { holder, anchor, left: self.budget.left(), depth: 0 });
        GO_ON
    }

    /// How many levels of a document, or of an item of a list, are open.
    fn depth(&self) -> usize {
        let around = if self.frames.len() >= 2 && self.is_list() { 2 } else { 0 };
        self.frames.len() - around
    }

    /// Puts a value of so many levels where it belongs. `left` is what was left before it.
    fn place(&mut self, mut value: Json, anchor: usize, left: usize, depth: usize) -> Flow {
        if anchor != 0 {
            let cost = left - self.budget.left();
            self.budget.take(cost)?;
            let node = Node::Collection(value.clone());
            self.anchors.insert(anchor, Anchored { node, cost, depth });
        }
        let in_list = self.in_list();
        if in_list
            && let [
                Frame { holder: Holder::Mapping { fields, .. }, .. },
                Frame { holder: Holder::List { .. }, .. },
            ] = &self.frames[..]
        {
            ItemType::of(fields).complete(&mut value);
        }
        let Some(frame) = self.frames.last_mut() else {
            let is_too_deep = std::mem::take(&mut self.is_too_deep);
            return Ok(hand_over(value, std::mem::take(&mut self.duplicates), is_too_deep, self.found));
        };
        frame.depth = frame.depth.max(depth);
        match &mut frame.holder {
            Holder::List { handed_over, .. } if in_list => {
                *handed_over += 1;
                let duplicates = std::mem::take(&mut self.duplicates);
                let is_too_deep = std::mem::take(&mut self.is_too_deep);
                let piece = Piece { json: value, item: Some(*handed_over), duplicates, is_too_deep };
                let flow = (self.found)(piece);
                if self.anchors.is_empty() {
                    self.budget.restore(frame.left);
                }
                return Ok(flow);
            }
            Holder::List { items, .. } => {
                self.budget.item()?;
                items.push(value);
            }
            Holder::Mapping { fields, merged, key, .. } => match (key.take(), &mut **fields) {
                (Some(Key::Name(name)), Value::Object(fields)) => {
                    self.budget.field(name.len(), fields.is_empty())?;
                    fields.insert(name, value.into_inner());
                }
                (Some(Key::Merge), Value::Object(_)) if self.is_too_deep => {}
                (Some(Key::Merge), Value::Object(fields)) => {
                    let replaced = merge(fields, merged, value.into_inner(), &mut self.budget)?;
                    replaced.into_iter().for_each(|name| self.note_duplicate(name, false));
                }
                _ => {}
            },
        }
        GO_ON
    }

    /// Records a key that its mapping has already: kubectl takes the last value, or either if types differ.
    fn note_duplicate(&mut self, name: String, is_other_type: bool) {
        let in_items =
            matches!(&self.frames[..], [_, Frame { holder: Holder::List { .. }, .. }, ..] if self.is_list());
        let step = |frame: &Frame| match &frame.holder {
            Holder::List { items, .. } => Some(At::Item(items.len())),
            Holder::Mapping { key: Some(Key::Name(name)), .. } => Some(At::Field(name.clone())),
            Holder::Mapping { .. } => None,
        };
        let frames = if in_items { &self.frames[2..] } else { &self.frames[..] };
        let around = frames.iter().take(frames.len().saturating_sub(1)).filter_map(step);
        let place = around.chain([At::Field(name)]).collect();
        self.duplicates.push(DuplicateKey { place, line: Some(self.line), is_other_type });
    }

    /// Whether the document is a list whose items are handed over one by one.
    fn is_list(&self) -> bool {
        let Some(Frame { holder: Holder::Mapping { fields, key: Some(Key::Name(name)), .. }, .. }) =
            self.frames.first()
        else {
            return false;
        };
        name == "items" && fields.as_object().is_some_and(begins_list)
    }

    /// Whether what is being composed are the items of a list, which can be handed over one by one.
    fn in_list(&self) -> bool {
        self.frames.len() == 2 && self.is_list()
    }
}

/// `<<`: the fields of a mapping, or of several, of which the first counts. They replace what is before them,
/// as what is behind them replaces theirs. Returns the mapping's own keys that are replaced.
fn merge(
    fields: &mut Map<String, Value>,
    merged: &mut BTreeSet<String>,
    source: Value,
    budget: &mut Budget,
) -> Result<Vec<String>, Failure> {
    let sources = match source {
        Value::Array(sources) => sources,
        source => vec![source],
    };
    let mut replaced = Vec::new();
    for source in sources.into_iter().rev() {
        let Value::Object(source) = source else { return Err(NO_MAPPING.into()) };
        for (name, value) in source {
            // The copies were paid for, and these names were not.
            if merged.insert(name.clone()) {
                budget.field(name.len(), false)?;
                replaced.extend(fields.contains_key(&name).then(|| name.clone()));
            }
            fields.insert(name, value);
        }
    }
    Ok(replaced)
}

/// What a scalar is by its tag, or without one by its look. To a tag of anything else it is a text.
pub(crate) fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, String> {
    match tag.map(|tag| tag.suffix_in_namespace(NAMESPACE)) {
        None if style == ScalarStyle::Plain => Ok(resolve(text)),
        Some(Some(tag)) => Scalar::tagged(text, &tag),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

fn is_merge(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    let is_meant = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) => {
            tag.suffix_in_namespace(NAMESPACE).is_some_and(|tag| tag == "merge")
                || (tag.handle(), tag.suffix()) == ("", "!")
        }
    };
    text == "<<" && is_meant
}
