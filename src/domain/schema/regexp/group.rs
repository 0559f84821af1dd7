//! What stands between parentheses, and the flags and names before it.
//! It must not know what the parts between them mean.

use super::limits::Node;
use super::{Fault, Parsed, Parser, consumed};

/// An open group, or the whole pattern.
pub(super) struct Group {
    captures: bool,
    /// The alternatives before the last `|`.
    alternatives: Option<Node>,
    /// What of this alternative is beyond the reach of a repetition.
    done: Option<Node>,
    /// What a repetition would repeat.
    last: Option<Node>,
}

impl Group {
    pub(super) fn new(captures: bool) -> Self {
        Self { captures, alternatives: None, done: None, last: None }
    }

    /// Ends the part before a `|`.
    fn split(&mut self) -> Node {
        let content = self.take();
        self.alternatives = Some(content);
        content
    }

    /// Everything that was read.
    fn take(&mut self) -> Node {
        let sequence = match (self.done.take(), self.last.take()) {
            (Some(done), Some(last)) => done.then(last),
            (done, last) => done.or(last).unwrap_or_else(Node::atom),
        };
        match self.alternatives.take() {
            Some(others) => others.or(sequence),
            None => sequence,
        }
    }
}

impl<'p> Parser<'p> {
    pub(super) fn push(&mut self, node: Node) {
        let group = &mut self.group;
        group.done = match (group.done, group.last) {
            (Some(done), Some(last)) => Some(done.then(last)),
            (done, last) => done.or(last),
        };
        group.last = Some(node);
    }

    pub(super) fn take_last(&mut self) -> Option<Node> {
        self.group.last.take()
    }

    pub(super) fn split(&mut self) -> Parsed<'p, ()> {
        self.rest = &self.rest[1..];
        let content = self.group.split();
        self.bear(content)
    }

    pub(super) fn finish(mut self) -> Parsed<'p, ()> {
        let content = self.group.take();
        self.bear(content)?;
        if self.outer.is_empty() { Ok(()) } else { Err(Fault("missing closing )", self.whole)) }
    }

    fn bear(&self, node: Node) -> Parsed<'p, ()> {
        node.exceeded().map_or(Ok(()), |problem| Err(Fault(problem, self.whole)))
    }

    fn enter(&mut self, captures: bool) {
        let outer = std::mem::replace(&mut self.group, Group::new(captures));
        self.outer.push(outer);
    }

    pub(super) fn open(&mut self) -> Parsed<'p, ()> {
        let before = self.rest;
        if !before.starts_with("(?") {
            self.rest = &before[1..];
            self.enter(true);
        } else if before.len() > 4 && before.starts_with("(?P<") {
            self.rest = named(before, 4)?;
            self.enter(true);
        } else if before.len() > 3 && before.starts_with("(?<") {
            self.rest = named(before, 3)?;
            self.enter(true);
        } else {
            let (rest, opens) = flags(before)?;
            self.rest = rest;
            if opens {
                self.enter(false);
            }
        }
        Ok(())
    }

    pub(super) fn close(&mut self) -> Parsed<'p, ()> {
        let content = self.group.take();
        self.bear(content)?;
        let captures = self.group.captures;
        self.group = self.outer.pop().ok_or(Fault("unexpected )", self.whole))?;
        self.rest = &self.rest[1..];
        let node = if captures { content.captured() } else { content };
        self.push(node);
        self.bear(node)
    }
}

/// The end of `(?P<name>` or `(?<name>`, whose name begins at the given byte.
fn named(text: &str, name_at: usize) -> Parsed<'_, &str> {
    let problem = "invalid named capture";
    let (name, rest) = text[name_at..].split_once('>').ok_or(Fault(problem, text))?;
    if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
        return Err(Fault(problem, consumed(text, rest)));
    }
    Ok(rest)
}

/// `(?i)` or `(?i:` at the start of the text: what follows, and whether a group begins.
///
/// Which flags are set is not kept: none of them makes anything after it an error, or no error.
fn flags(text: &str) -> Parsed<'_, (&str, bool)> {
    let mut rest = &text[2..];
    let mut negated = false;
    let mut flag_seen = false;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            'i' | 'm' | 's' | 'U' => flag_seen = true,
            '-' if !negated => {
                negated = true;
                flag_seen = false;
            }
            ':' | ')' if !negated || flag_seen => return Ok((rest, c == ':')),
            _ => break,
        }
    }
    Err(Fault("invalid or unsupported Perl syntax", consumed(text, rest)))
}
