//! Documents of YAML, composed into JSON as kubectl does it. Each copy that an alias expands to counts
//! against the budget, and a value that another of the same key replaces is noted.

use std::collections::HashMap;
use std::ops::ControlFlow;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::budget::Budget;
use super::json::begins_list;
use super::scalar;
use crate::document::{At, DuplicateKey, Found, ItemType, Piece, hand_over};
use crate::malformed::{Malformed, OPEN};
use kube_structural_schema::json::{DEPTH, Json};

/// Reads all documents.
pub(super) fn parse(text: &str, budget: &mut Budget, found: &mut Found<'_>) -> Result<(), Malformed> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = OPEN;
    options.block_nesting_limit = OPEN;
    let mut composer = Composer {
        budget,
        found,
        frames: Vec::new(),
        anchors: HashMap::new(),
        line: 0,
        duplicates: Vec::new(),
        skipped: 0,
        is_too_deep: false,
    };
    let all = composer.budget.left();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| match error.kind() {
            ErrorKind::RecursionLimitExceeded => Malformed::Endless,
            _ => Malformed::Yaml { line: error.marker().line(), problem: error.info() },
        })?;
        if matches!(event, Event::DocumentStart(..)) {
            composer.anchors.clear();
            composer.budget.restore(all);
        }
        composer.line = span.start.line();
        let flow = composer.event(event).map_err(|error| match error {
            Failure::Exceeded(reason) => reason,
            Failure::Wrong(problem) => Malformed::Yaml { line: span.start.line(), problem },
        })?;
        if flow.is_break() {
            break;
        }
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

type Flow = Result<ControlFlow<()>, Failure>;

const GO_ON: Flow = Ok(ControlFlow::Continue(()));

struct Composer<'a, 'f> {
    budget: &'a mut Budget,
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

/// A value that aliases stand for.
#[derive(Clone)]
struct Anchored {
    value: Json,
    /// What a copy costs.
    cost: usize,
    /// How many levels it has.
    depth: usize,
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
    List { items: Vec<Json>, handed_over: usize },
    Mapping { fields: Json, merged: Vec<Json>, key: Option<Key> },
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
                if let Some(Holder::Mapping { key: key @ None, .. }) =
                    self.frames.last_mut().map(|frame| &mut frame.holder)
                {
                    *key = Some(name(&text, style, tag.as_deref())?);
                    self.note_duplicate();
                    return GO_ON;
                }
                let left = self.budget.left();
                self.budget.scalar(text.len())?;
                self.place(value(&text, style, tag.as_deref())?.into(), anchor, left, 0)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(Holder::List { items: Vec::new(), handed_over: 0 }, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                let fields = Json::from(Value::Object(Map::new()));
                self.begin(Holder::Mapping { fields, merged: Vec::new(), key: None }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Frame { holder, anchor, left, depth }) = self.frames.pop() else { return GO_ON };
                self.place(ended(holder)?, anchor, left, depth + 1)
            }
            Event::Alias(anchor) => {
                let left = self.budget.left();
                let Some(Anchored { value, cost, depth }) = self.anchors.get(&anchor) else {
                    // It may be one of what was skipped.
                    return match self.is_too_deep {
                        true => self.place(Json::default(), 0, left, 0),
                        false => {
                            Err(Failure::Wrong("an alias inside the value that it refers to".to_owned()))
                        }
                    };
                };
                let depth = *depth;
                if self.depth() + depth > DEPTH {
                    self.is_too_deep = true;
                    return self.place(Json::default(), 0, left, 0);
                }
                self.budget.take(*cost)?;
                let value = value.clone();
                self.place(value, 0, left, depth)
            }
            _ => GO_ON,
        }
    }

    fn begin(&mut self, holder: Holder, anchor: usize) -> Flow {
        if let Some(Holder::Mapping { key: None, .. }) = self.frames.last().map(|frame| &frame.holder) {
            return Err(Failure::Wrong("a key is not a scalar".to_owned()));
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
            self.anchors.insert(anchor, Anchored { value: value.clone(), cost, depth });
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
            Holder::Mapping { fields, merged, key } => match (key.take(), &mut **fields) {
                (Some(Key::Name(name)), Value::Object(fields)) => {
                    self.budget.field(name.len(), fields.is_empty())?;
                    fields.insert(name, value.into_inner());
                }
                _ => merged.push(value),
            },
        }
        GO_ON
    }

    /// Records a key that its mapping has already: kubectl takes the last value.
    fn note_duplicate(&mut self) {
        let Some(Holder::Mapping { fields, key: Some(Key::Name(name)), .. }) =
            self.frames.last().map(|frame| &frame.holder)
        else {
            return;
        };
        if !fields.as_object().is_some_and(|fields| fields.contains_key(name)) {
            return;
        }
        let in_items =
            matches!(&self.frames[..], [_, Frame { holder: Holder::List { .. }, .. }, ..] if self.is_list());
        let step = |frame: &Frame| match &frame.holder {
            Holder::List { items, .. } => Some(At::Item(items.len())),
            Holder::Mapping { key: Some(Key::Name(name)), .. } => Some(At::Field(name.clone())),
            Holder::Mapping { .. } => None,
        };
        let frames = if in_items { &self.frames[2..] } else { &self.frames[..] };
        let place = frames.iter().filter_map(step).collect();
        self.duplicates.push(DuplicateKey { place, line: Some(self.line) });
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

fn ended(holder: Holder) -> Result<Json, Failure> {
    match holder {
        Holder::List { items, .. } => {
            Ok(Value::Array(items.into_iter().map(Json::into_inner).collect()).into())
        }
        Holder::Mapping { mut fields, merged, .. } => {
            for source in merged {
                merge(&mut fields, source)?;
            }
            Ok(fields)
        }
    }
}

/// `<<`: the fields of a mapping, or of several, that are not there already. They were paid for as copies.
fn merge(fields: &mut Json, mut source: Json) -> Result<(), Failure> {
    match (&mut **fields, &mut *source) {
        (Value::Object(fields), Value::Object(merged)) => {
            for (name, value) in std::mem::take(merged) {
                fields.entry(name).or_insert(value);
            }
            Ok(())
        }
        (_, Value::Array(sources)) if sources.iter().all(Value::is_object) => {
            let sources: Vec<_> = std::mem::take(sources).into_iter().map(Json::from).collect();
            sources.into_iter().try_for_each(|source| merge(fields, source))
        }
        _ => Err(Failure::Wrong("`<<` merges something other than a mapping".to_owned())),
    }
}

fn name(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Key, Failure> {
    let is_text = style != ScalarStyle::Plain || core(tag) == Some("str");
    if is_text {
        return Ok(Key::Name(text.to_owned()));
    }
    if text == "<<" {
        return Ok(Key::Merge);
    }
    scalar::key(text).map(Key::Name).ok_or_else(|| Failure::Wrong("a key has no form in JSON".to_owned()))
}

fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Failure> {
    match core(tag) {
        Some("str") => Ok(text.into()),
        Some("binary") => scalar::binary(text)
            .map(Value::from)
            .ok_or_else(|| Failure::Wrong("!!binary is not in base64".to_owned())),
        None if style != ScalarStyle::Plain => Ok(text.into()),
        _ => scalar::resolve(text)
            .ok_or_else(|| Failure::Wrong("a number that is not finite has no form in JSON".to_owned())),
    }
}

fn core(tag: Option<&Tag>) -> Option<&str> {
    tag.filter(|tag| tag.handle() == "tag:yaml.org,2002:").map(Tag::suffix)
}
