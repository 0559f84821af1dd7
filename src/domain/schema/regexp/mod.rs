//! Whether Go's `regexp` compiles a pattern, and what it says where it does not.
//! It must not match anything.
//!
//! Source: Go 1.26 `regexp/syntax`, with the flags of `regexp.Compile`.

mod class;
mod escape;
mod group;
mod limits;
mod unicode;

use limits::Node;

/// What Go says of a pattern that it does not compile: `` error parsing regexp: missing closing ]: `[a` ``.
///
/// Go's limits on the compiled program's size and depth are checked without its simplifications of alternatives, so a
/// pattern of some megabytes may be called too large here and not there.
pub fn syntax_error(pattern: &str) -> Option<String> {
    let Fault(problem, excerpt) = Parser::new(pattern).parse().err()?;
    Some(format!("error parsing regexp: {problem}: `{excerpt}`"))
}

/// What is wrong, and the part of the pattern that Go shows.
struct Fault<'p>(&'static str, &'p str);

type Parsed<'p, T> = Result<T, Fault<'p>>;

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    /// The innermost open group, or the whole pattern.
    group: group::Group,
    /// The groups around it.
    outer: Vec<group::Group>,
    /// Where the last operator stood if it was a repetition: two in a row are refused.
    repetition: Option<&'p str>,
}

impl<'p> Parser<'p> {
    fn new(whole: &'p str) -> Self {
        Self { whole, rest: whole, group: group::Group::new(false), outer: Vec::new(), repetition: None }
    }

    fn parse(mut self) -> Parsed<'p, ()> {
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let mut repeats = false;
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => self.split()?,
                '[' => {
                    self.rest = class::bracketed(before)?;
                    self.push(Node::atom());
                }
                '^' | '$' | '.' => {
                    self.rest = &before[1..];
                    self.push(Node::atom());
                }
                '*' | '+' | '?' => {
                    self.rest = &before[1..];
                    self.repeat(before, if c == '*' { Node::starred } else { Node::looped })?;
                    repeats = true;
                }
                '{' => match counted(before) {
                    Some((min, max, rest)) => {
                        self.rest = rest;
                        if min > 1000 || max.is_some_and(|max| max > 1000 || min > max) {
                            return Err(Fault("invalid repeat count", consumed(before, rest)));
                        }
                        self.repeat(before, |node| node.counted(min, max))?;
                        repeats = true;
                    }
                    None => self.literal(c),
                },
                '\\' => self.escaped()?,
                c => self.literal(c),
            }
            self.repetition = repeats.then_some(before);
        }
        self.finish()
    }

    fn literal(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
        self.push(Node::literal());
    }

    fn escaped(&mut self) -> Parsed<'p, ()> {
        let before = self.rest;
        match before.as_bytes().get(1) {
            Some(b'Q') => {
                let (quoted, rest) = before[2..].split_once("\\E").unwrap_or((&before[2..], ""));
                self.rest = rest;
                quoted.chars().for_each(|_| self.push(Node::literal()));
                return Ok(());
            }
            Some(b'A' | b'b' | b'B' | b'z') => {
                self.rest = &before[2..];
                self.push(Node::atom());
            }
            _ => match escape::class(before)? {
                Some(rest) => {
                    self.rest = rest;
                    self.push(Node::atom());
                }
                None => {
                    self.rest = escape::character(before)?.1;
                    self.push(Node::literal());
                }
            },
        }
        Ok(())
    }

    fn repeat(&mut self, before: &'p str, repeated: impl FnOnce(Node) -> Node) -> Parsed<'p, ()> {
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
        }
        if let Some(first) = self.repetition {
            return Err(Fault("invalid nested repetition operator", consumed(first, self.rest)));
        }
        let operator = consumed(before, self.rest);
        let Some(node) = self.take_last() else {
            return Err(Fault("missing argument to repetition operator", operator));
        };
        let node = repeated(node);
        if !node.repeats_within_limit() {
            return Err(Fault("invalid repeat count", operator));
        }
        self.push(node);
        Ok(())
    }
}

/// `{2}`, `{2,}` or `{2,3}` at the start of the text; anything else is no operator.
fn counted(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (min, rest) = decimal(text.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => decimal(rest).map(|(max, rest)| (Some(max), rest))?,
    };
    Some((min, max, rest.strip_prefix('}')?))
}

/// A number without leading zeros; one that is too big is only known to be too big.
fn decimal(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

/// What was read to come from one text to a later one, its end.
fn consumed<'p>(from: &'p str, to: &str) -> &'p str {
    &from[..from.len() - to.len()]
}

#[cfg(test)]
mod tests;
