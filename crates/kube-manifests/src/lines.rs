//! The lines of a file on which the places of its documents stand, for reports that point there.
//! A place that is not found has no line, so nothing else may depend on it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{Event, Options, Parser};

use crate::document::{At, Document, Source};
use crate::yaml::scalar;

/// The lines of all places in the text that a document was read from, and others of its list with it.
#[derive(Debug)]
pub struct Lines {
    file: Arc<str>,
    part: Range<usize>,
    documents: Vec<Option<Node>>,
}

/// A place, and those right below it.
#[derive(Debug)]
struct Node {
    line: usize,
    below: HashMap<At, Self>,
}

impl Document {
    /// The lines of the text that the document was read from.
    pub fn lines(&self) -> Lines {
        Lines::of(&self.source)
    }

    /// The line of the file, counted from 1, of a place in the document, or of the deepest place above it
    /// that is written there; `None` if these are the lines of another text.
    pub fn line(&self, lines: &Lines, place: &[At]) -> Option<usize> {
        let item = self.origin.item.map(|item| [At::Field("items".to_owned()), At::Item(item - 1)]);
        lines.find(&self.source, item.iter().flatten().chain(place))
    }
}

impl Lines {
    /// Whether these are the lines of the text that a document was read from.
    pub fn are_of(&self, document: &Document) -> bool {
        self.is_same(&document.source)
    }

    fn is_same(&self, source: &Source) -> bool {
        Arc::ptr_eq(&self.file, &source.file) && self.part == source.part
    }

    fn of(source: &Source) -> Self {
        let mut options = Options::default();
        options.set_emit_comments(false);
        let mut tree = Tree::default();
        for event in Parser::new_from_str_with_options(source.text(), options) {
            // What follows an error has no line.
            let Ok((event, span)) = event else { break };
            tree.event(&event, source.lines + span.start.line());
        }
        while !tree.open.is_empty() {
            tree.close();
        }
        Self { file: source.file.clone(), part: source.part.clone(), documents: tree.documents }
    }

    fn find<'a>(&self, source: &Source, place: impl Iterator<Item = &'a At>) -> Option<usize> {
        let documents = self.is_same(source).then_some(&self.documents)?;
        let mut node = documents.get(source.document.checked_sub(1)?)?.as_ref()?;
        for at in place {
            let Some(below) = node.below.get(at) else { break };
            node = below;
        }
        Some(node.line)
    }
}

/// What was read so far.
#[derive(Default)]
struct Tree {
    documents: Vec<Option<Node>>,
    /// The lists and mappings that have not ended, each with its place in the one before.
    open: Vec<Open>,
}

struct Open {
    place: Place,
    node: Node,
    kind: Kind,
}

/// What a value is in the one around it.
enum Place {
    Document,
    Below(At),
    /// The value of a key that is no scalar.
    Unnamed,
    /// Such a key.
    Key,
}

enum Kind {
    List {
        next: usize,
    },
    /// With the key whose value comes next: `None` inside where it is no scalar.
    Mapping {
        key: Option<(Option<String>, usize)>,
    },
}

impl Tree {
    fn event(&mut self, event: &Event<'_>, line: usize) {
        match event {
            Event::DocumentStart(..) => self.documents.push(None),
            Event::Scalar(..) | Event::Alias(_) => {
                if let Some(Open { kind: Kind::Mapping { key: key @ None }, .. }) = self.open.last_mut() {
                    let name = match event {
                        Event::Scalar(text, style, _, tag) => {
                            scalar(text, *style, tag.as_deref()).ok().and_then(|key| key.into_key().ok())
                        }
                        _ => None,
                    };
                    *key = Some((name, line));
                    return;
                }
                let (place, line) = self.next(line);
                self.add(place, Node { line, below: HashMap::new() });
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let (place, line) = self.next(line);
                let kind = match event {
                    Event::SequenceStart(..) => Kind::List { next: 0 },
                    _ => Kind::Mapping { key: None },
                };
                self.open.push(Open { place, node: Node { line, below: HashMap::new() }, kind });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => {}
        }
    }

    /// The place of the value that begins on this line, and the line of its key.
    fn next(&mut self, line: usize) -> (Place, usize) {
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(Kind::List { next }) => {
                *next += 1;
                (Place::Below(At::Item(*next - 1)), line)
            }
            Some(Kind::Mapping { key }) => match key.take() {
                Some((Some(name), line)) => (Place::Below(At::Field(name)), line),
                Some((None, line)) => (Place::Unnamed, line),
                None => (Place::Key, line),
            },
            None => (Place::Document, line),
        }
    }

    fn close(&mut self) {
        if let Some(Open { place, node, .. }) = self.open.pop() {
            self.add(place, node);
        }
    }

    /// Adds what has ended. Of keys that are there twice, the last counts, as for kubectl.
    fn add(&mut self, place: Place, node: Node) {
        match (place, self.open.last_mut()) {
            (Place::Below(at), Some(above)) => drop(above.node.below.insert(at, node)),
            (Place::Key, Some(Open { kind: Kind::Mapping { key }, .. })) => *key = Some((None, node.line)),
            (Place::Document, None) => {
                if let Some(document) = self.documents.last_mut() {
                    document.get_or_insert(node);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::parts;

    const TEXT: &str = "\
# two documents
a: 1
---
kind: List
items:
- a: {b: [1,
    2]}
- other: 1
  a:
    b:
    - 3
    -
      c: 4
---
&k c: 1
*k : [*k]
d: *k
yes: 1
'on': 2
d:
- e
";

    fn found(document: usize, item: Option<usize>, place: &str) -> Option<usize> {
        let part = parts(TEXT).nth(document - 1)?.expect("separators alone");
        let file: std::sync::Arc<str> = part.text.into();
        let source = Source { part: 0..file.len(), file, lines: part.lines, document: 1 };
        let item = item.map(|item| [At::Field("items".to_owned()), At::Item(item - 1)]);
        let place = place
            .split_whitespace()
            .map(|word| word.parse().map_or_else(|_| At::Field(word.to_owned()), At::Item));
        let target: Vec<At> = item.into_iter().flatten().chain(place).collect();
        Lines::of(&source).find(&source, target.iter())
    }

    #[test]
    fn places_have_lines() {
        let cases = [
            (1, None, "a", Some(2)),
            (1, None, "", Some(2)),
            (2, None, "kind", Some(4)),
            (2, Some(1), "a b 1", Some(7)),
            (2, Some(2), "a", Some(9)),
            (2, Some(2), "a b 1 c", Some(13)),
            (2, Some(2), "a b 1 d", Some(13)),
            (2, Some(2), "a x", Some(9)),
            (2, Some(1), "other", Some(6)),
            (3, None, "true", Some(18)),
            (3, None, "on", Some(19)),
            (3, None, "d", Some(20)),
            (3, None, "d 0", Some(21)),
            (4, None, "a", None),
        ];
        for (document, item, place, expected) in cases {
            assert_eq!(found(document, item, place), expected, "{document} {item:?} {place}");
        }
    }
}
