//! The line of a file on which a place of a document stands, for reports that point there.
//! A place that is not found has no line, so nothing else may depend on it.

use granit_parser::{Event, Options, Parser};

use crate::document::{At, Document, Source};

impl Document {
    /// The line of the file, counted from 1, of a place in the document, or of the deepest place above it
    /// that is written there.
    pub fn line(&self, place: &[At]) -> Option<usize> {
        let item = self.origin.item.map(|item| [At::Field("items".to_owned()), At::Item(item - 1)]);
        line(&self.source, &item.iter().flatten().chain(place).collect::<Vec<_>>())
    }
}

fn line(source: &Source, target: &[&At]) -> Option<usize> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let (mut documents, mut search) = (0, Search { target, holders: Vec::new(), matched: 0, line: None });
    for event in Parser::new_from_str_with_options(source.text(), options) {
        let (event, span) = event.ok()?;
        documents += usize::from(matches!(event, Event::DocumentStart(..)));
        if documents == source.document && search.event(&event, source.lines + span.start.line()) {
            break;
        }
    }
    search.line
}

struct Search<'a> {
    target: &'a [&'a At],
    holders: Vec<Holder>,
    /// How many steps of the target lead to where the search is.
    matched: usize,
    line: Option<usize>,
}

enum Holder {
    List { next: usize },
    Mapping { key_is_next: bool },
}

impl Search<'_> {
    /// Goes one event further; true where there is nothing more to find.
    fn event(&mut self, event: &Event<'_>, line: usize) -> bool {
        match event {
            Event::Scalar(text, ..) => match self.holders.last_mut() {
                Some(Holder::Mapping { key_is_next: key_is_next @ true }) => {
                    *key_is_next = false;
                    self.step(|at| matches!(at, At::Field(name) if *name == **text), line)
                }
                _ => self.value(line) || self.left(),
            },
            Event::Alias(_) => match self.holders.last_mut() {
                Some(Holder::Mapping { key_is_next: key_is_next @ true }) => {
                    *key_is_next = false;
                    false
                }
                _ => self.value(line) || self.left(),
            },
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let ended = self.value(line);
                self.holders.push(match event {
                    Event::SequenceStart(..) => Holder::List { next: 0 },
                    _ => Holder::Mapping { key_is_next: true },
                });
                ended
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.holders.pop();
                self.left()
            }
            Event::DocumentEnd => true,
            _ => false,
        }
    }

    /// A value begins: that of a document, of the key before it, or an item.
    fn value(&mut self, line: usize) -> bool {
        match self.holders.last_mut() {
            Some(Holder::List { next }) => {
                let index = *next;
                *next += 1;
                self.step(|at| *at == At::Item(index), line)
            }
            Some(Holder::Mapping { key_is_next }) => {
                *key_is_next = true;
                false
            }
            None => {
                self.line = Some(line);
                self.target.is_empty()
            }
        }
    }

    /// A key or an item, which may be the next step of the target.
    fn step(&mut self, is_it: impl Fn(&At) -> bool, line: usize) -> bool {
        if self.matched + 1 == self.holders.len() && self.target.get(self.matched).is_some_and(|at| is_it(at))
        {
            self.matched += 1;
            self.line = Some(line);
        }
        self.matched == self.target.len()
    }

    /// A value has ended. What the target led to is not there where it was the one that the search was in.
    fn left(&self) -> bool {
        self.matched > 0 && self.matched >= self.holders.len()
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
        line(&source, &target.iter().collect::<Vec<_>>())
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
            (3, None, "d", Some(17)),
            (4, None, "a", None),
        ];
        for (document, item, place, expected) in cases {
            assert_eq!(found(document, item, place), expected, "{document} {item:?} {place}");
        }
    }
}
