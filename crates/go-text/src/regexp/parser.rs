//! Go's regular expression syntax, read into the engine's tree.
//! Groups have neither names nor numbers here: only captures need them.

use regex_syntax::hir::{Class, ClassUnicode, Hir, Look, Repetition};

use super::class::{self, Escape};
use super::error::{SyntaxError, error};
use super::unicode;

/// The most copies that counted repetitions may require, nested ones multiplied.
const MAX_REPEAT: u32 = 1000;
/// How deep the tree may be.
const MAX_HEIGHT: u32 = 1000;
/// How many instructions Go's program may have: 128 MiB at 40 bytes each.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// How many ends of ranges all classes may have together: 128 MiB at 4 bytes each.
const MAX_RUNES: usize = (128 << 20) / 4;

/// Reads a whole pattern.
pub(super) fn parse(pattern: &str) -> Result<Hir, SyntaxError> {
    let mut parser =
        Parser { whole: pattern, rest: pattern, flags: Flags::default(), open: Vec::new(), runes: 0 };
    let mut current = Group::default();
    let mut last_repeat = "";
    while !parser.rest.is_empty() {
        last_repeat = parser.step(&mut current, last_repeat)?;
    }
    if !parser.open.is_empty() {
        return Err(error("missing closing )", pattern));
    }
    Ok(parser.checked(current.close())?.hir)
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// `i`
    pub(super) fold: bool,
    /// `m`
    multi_line: bool,
    /// `s`
    dot_newline: bool,
    /// `U`
    lazy: bool,
}

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    flags: Flags,
    /// The groups around the current one, outermost first. A pattern may open more than a call stack would
    /// bear.
    open: Vec<Group>,
    runes: usize,
}

/// A group that is still being read: its finished branches, and the terms of the one at hand.
#[derive(Default)]
struct Group {
    /// What the flags become when it closes.
    outer_flags: Flags,
    capturing: bool,
    branches: Vec<Node>,
    terms: Vec<Node>,
}

/// A part of the tree, and its numbers that Go limits.
struct Node {
    hir: Hir,
    joint: Joint,
    height: u32,
    size: u64,
    /// The product of the counted repetitions on the worst way down.
    copies: u32,
}

/// What Go flattens: a concatenation in a concatenation, an alternation in an alternation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    None,
    Concat,
    Alternate,
}

impl<'p> Parser<'p> {
    /// Reads one term or operator; returns the text from its repetition operator on, if it is one.
    fn step(&mut self, current: &mut Group, last_repeat: &'p str) -> Result<&'p str, SyntaxError> {
        let Some(next) = self.rest.chars().next() else { return Ok("") };
        match next {
            '(' => self.open_group(current)?,
            ')' => self.close_group(current)?,
            '|' => {
                let branch = self.checked(concat(std::mem::take(&mut current.terms)))?;
                current.branches.push(branch);
                self.skip(1);
            }
            '^' => self.look(current, if self.flags.multi_line { Look::StartLF } else { Look::Start }, 1),
            '$' => self.look(current, if self.flags.multi_line { Look::EndLF } else { Look::End }, 1),
            '.' => {
                let mut any = unicode::everything();
                if !self.flags.dot_newline {
                    any.difference(&class::single('\n'));
                }
                current.terms.push(Node::leaf(Hir::class(Class::Unicode(any))));
                self.skip(1);
            }
            '[' => {
                let (class, rest) = class::bracketed(self.rest, self.flags.fold)?;
                self.rest = rest;
                self.class(current, class)?;
            }
            '*' | '+' | '?' => {
                let (min, max) = match next {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                return self.repeat(current, Operator { min, max, counted: false, length: 1 }, last_repeat);
            }
            '{' => match counts(self.rest) {
                None => self.literal(current, 1, Some('{')),
                Some(Counts { min: Some(min), max, length }) => {
                    return self.repeat(current, Operator { min, max, counted: true, length }, last_repeat);
                }
                Some(Counts { min: None, length, .. }) => {
                    return Err(error("invalid repeat count", &self.rest[..length]));
                }
            },
            '\\' => self.escape(current)?,
            other => self.literal(current, other.len_utf8(), Some(other)),
        }
        Ok("")
    }

    fn escape(&mut self, current: &mut Group) -> Result<(), SyntaxError> {
        match self.rest.as_bytes().get(1) {
            Some(b'A') => self.look(current, Look::Start, 2),
            Some(b'z') => self.look(current, Look::End, 2),
            Some(b'b') => self.look(current, Look::WordAscii, 2),
            Some(b'B') => self.look(current, Look::WordAsciiNegate, 2),
            Some(b'C') => return Err(error("invalid escape sequence", &self.rest[..2])),
            Some(b'Q') => {
                let quoted = &self.rest[2..];
                let (text, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                for letter in text.chars() {
                    self.literal(current, 0, Some(letter));
                }
                self.rest = rest;
            }
            _ => {
                let (escape, rest) = class::escape(self.rest, self.flags.fold)?;
                self.rest = rest;
                match escape {
                    Escape::Class(class) => self.class(current, class)?,
                    Escape::Character(letter) => self.literal(current, 0, letter),
                }
            }
        }
        Ok(())
    }

    /// `(`, `(?P<name>`, `(?<name>`, `(?flags)` and `(?flags:`.
    fn open_group(&mut self, current: &mut Group) -> Result<(), SyntaxError> {
        let Some(perl) = self.rest.strip_prefix("(?") else {
            self.skip(1);
            self.enter(current, true);
            return Ok(());
        };
        if perl.starts_with("P<") && perl.len() > 2 || perl.starts_with('<') && perl.len() > 1 {
            let Some(end) = self.rest.find('>') else {
                return Err(error("invalid named capture", self.rest));
            };
            let name = &self.rest[if perl.starts_with('P') { 4 } else { 3 }..end];
            if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                return Err(error("invalid named capture", &self.rest[..=end]));
            }
            self.skip(end + 1);
            self.enter(current, true);
            return Ok(());
        }
        let mut flags = self.flags;
        let (mut on, mut any) = (true, false);
        for (index, letter) in perl.char_indices() {
            let flag = match letter {
                'i' => &mut flags.fold,
                'm' => &mut flags.multi_line,
                's' => &mut flags.dot_newline,
                'U' => &mut flags.lazy,
                '-' if on => {
                    (on, any) = (false, false);
                    continue;
                }
                ':' | ')' if on || any => {
                    self.skip(2 + index + 1);
                    if letter == ':' {
                        self.enter(current, false);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => {
                    return Err(error(
                        "invalid or unsupported Perl syntax",
                        &self.rest[..2 + index + letter.len_utf8()],
                    ));
                }
            };
            *flag = on;
            any = true;
        }
        Err(error("invalid or unsupported Perl syntax", self.rest))
    }

    fn enter(&mut self, current: &mut Group, capturing: bool) {
        let inner = Group { outer_flags: self.flags, capturing, ..Group::default() };
        self.open.push(std::mem::replace(current, inner));
    }

    fn close_group(&mut self, current: &mut Group) -> Result<(), SyntaxError> {
        let Some(outer) = self.open.pop() else {
            return Err(error("unexpected )", self.whole));
        };
        let inner = std::mem::replace(current, outer);
        self.flags = inner.outer_flags;
        let capturing = inner.capturing;
        let mut node = self.checked(inner.close())?;
        if capturing {
            node = self.checked(Node {
                joint: Joint::None,
                height: node.height + 1,
                size: node.size + 2,
                ..node
            })?;
        }
        current.terms.push(node);
        self.skip(1);
        Ok(())
    }

    fn repeat(
        &mut self,
        current: &mut Group,
        operator: Operator,
        last_repeat: &'p str,
    ) -> Result<&'p str, SyntaxError> {
        let before = self.rest;
        let Operator { min, max, counted, mut length } = operator;
        if counted && (min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || max < min)) {
            return Err(error("invalid repeat count", &before[..length]));
        }
        let mut greedy = !self.flags.lazy;
        if before[length..].starts_with('?') {
            length += 1;
            greedy = !greedy;
        }
        self.skip(length);
        if !last_repeat.is_empty() {
            let both = &last_repeat[..last_repeat.len() - self.rest.len()];
            return Err(error("invalid nested repetition operator", both));
        }
        let Some(sub) = current.terms.pop() else {
            return Err(error("missing argument to repetition operator", &before[..length]));
        };
        let node = sub.repeated(min, max, greedy, counted);
        if counted && (min >= 2 || max.is_some_and(|max| max >= 2)) && node.copies > MAX_REPEAT {
            return Err(error("invalid repeat count", &before[..length]));
        }
        current.terms.push(self.checked(node)?);
        Ok(before)
    }

    fn look(&mut self, current: &mut Group, look: Look, length: usize) {
        current.terms.push(Node::leaf(Hir::look(look)));
        self.skip(length);
    }

    /// A character; `None` if the pattern names a surrogate, which no text holds.
    fn literal(&mut self, current: &mut Group, length: usize, letter: Option<char>) {
        let hir = match letter {
            None => Hir::fail(),
            Some(letter) if self.flags.fold => {
                let mut class = class::single(letter);
                unicode::fold(&mut class);
                Hir::class(Class::Unicode(class))
            }
            Some(letter) => Hir::literal(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        };
        current.terms.push(Node::leaf(hir));
        self.skip(length);
    }

    fn class(&mut self, current: &mut Group, class: ClassUnicode) -> Result<(), SyntaxError> {
        self.runes += 2 * class.ranges().len();
        let node = Node::leaf(Hir::class(Class::Unicode(class)));
        current.terms.push(self.checked(node)?);
        Ok(())
    }

    fn checked(&self, node: Node) -> Result<Node, SyntaxError> {
        if self.runes > MAX_RUNES || node.size > MAX_SIZE {
            return Err(error("expression too large", self.whole));
        }
        if node.height > MAX_HEIGHT {
            return Err(error("expression nests too deeply", self.whole));
        }
        Ok(node)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}

impl Group {
    fn close(self) -> Node {
        let Self { mut branches, terms, .. } = self;
        branches.push(concat(terms));
        join(branches, Joint::Alternate)
    }
}

fn concat(terms: Vec<Node>) -> Node {
    if terms.is_empty() { Node::leaf(Hir::empty()) } else { join(terms, Joint::Concat) }
}

fn join(mut nodes: Vec<Node>, joint: Joint) -> Node {
    if nodes.len() == 1
        && let Some(only) = nodes.pop()
    {
        return only;
    }
    let below = nodes.iter().map(|node| if node.joint == joint { node.height - 1 } else { node.height });
    let height = 1 + below.max().unwrap_or(0);
    let between = if joint == Joint::Alternate { nodes.len() as u64 - 1 } else { 0 };
    let size = nodes.iter().map(|node| node.size).sum::<u64>() + between;
    let copies = nodes.iter().map(|node| node.copies).max().unwrap_or(0);
    let parts = nodes.into_iter().map(|node| node.hir).collect();
    let hir = if joint == Joint::Alternate { Hir::alternation(parts) } else { Hir::concat(parts) };
    Node { hir, joint, height, size, copies }
}

impl Node {
    fn leaf(hir: Hir) -> Self {
        Self { hir, joint: Joint::None, height: 1, size: 1, copies: 0 }
    }

    fn repeated(self, min: u32, max: Option<u32>, greedy: bool, counted: bool) -> Self {
        let Self { hir, height, size, copies, .. } = self;
        let factor = max.unwrap_or(min);
        let copies = match (counted, factor) {
            (true, 0) if max.is_some() => 0,
            (true, 1..) => factor.saturating_mul(copies.max(1)),
            _ => copies,
        };
        let size = match (counted, max) {
            (false, _) | (true, None) => 2 + size * u64::from(min.max(1)),
            (true, Some(max)) => size * u64::from(max) + u64::from(max - min),
        };
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(hir) });
        Self { hir, joint: Joint::None, height: height + 1, size: size.max(1), copies }
    }
}

/// A repetition operator and its length in the pattern.
struct Operator {
    min: u32,
    max: Option<u32>,
    counted: bool,
    length: usize,
}

/// What stands in braces; no `min` where a number is beyond all limits.
struct Counts {
    min: Option<u32>,
    max: Option<u32>,
    length: usize,
}

/// `{min}`, `{min,}` or `{min,max}`; anything else is literal text.
fn counts(text: &str) -> Option<Counts> {
    let inner = text.strip_prefix('{')?;
    let (min, rest) = number(inner)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => number(rest).map(|(max, rest)| (Some(max), rest))?,
    };
    let length = text.len() - rest.strip_prefix('}')?.len();
    let too_big = min.is_none() || max == Some(None);
    Some(Counts { min: min.filter(|_| !too_big), max: max.flatten(), length })
}

/// A number without leading zeros; none inside where it has more than nine digits.
fn number(text: &str) -> Option<(Option<u32>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 1 && text.starts_with('0') {
        return None;
    }
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok().filter(|_| digits <= 9), rest))
}
