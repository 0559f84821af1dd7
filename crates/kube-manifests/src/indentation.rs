//! Tabs in the white space that a line begins with: YAML 1.2 lets them stand before a comment and in a blank
//! line, and kubectl refuses them there.
//!
//! Source: go.yaml.in/yaml/v2 `scannerc.go`, `yaml_parser_scan_to_next_token` and
//! `yaml_parser_scan_block_scalar_breaks`.

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};

/// The line of a document, from 1 on, with a tab that kubectl refuses. What else is wrong with the document
/// is not reported here.
pub(super) fn refused_tab(text: &str, options: &Options) -> Option<usize> {
    if !text.lines().any(begins_with_tab) {
        return None;
    }
    let mut walk = Walk { text, end: 0, open: Vec::new(), brackets: 0 };
    for event in Parser::new_from_str_with_options(text, options.clone()) {
        let (event, span) = event.ok()?;
        let found = walk.tab(&event, &span);
        if found.is_some() || event == Event::DocumentEnd {
            return found;
        }
    }
    None
}

/// Whether a tab stands before anything but spaces and indicators.
fn begins_with_tab(line: &str) -> bool {
    let mut line = line.trim_start_matches(' ');
    while let Some(behind) =
        line.strip_prefix(['-', '?', ':']).filter(|behind| behind.starts_with([' ', '\t']))
    {
        line = behind.trim_start_matches(' ');
    }
    line.starts_with('\t')
}

/// The walk over a document by its events.
struct Walk<'t> {
    text: &'t str,
    /// Behind the last scalar, alias or collection in brackets.
    end: usize,
    /// The collections that are open, with whether each has brackets.
    open: Vec<bool>,
    /// How many of them have. A tab may stand anywhere in those.
    brackets: usize,
}

impl Walk<'_> {
    /// The line, from 1 on, of a tab that kubectl refuses, up to the end of what an event is about.
    fn tab(&mut self, event: &Event<'_>, span: &Span) -> Option<usize> {
        let range = span.byte_range()?;
        let is_end = matches!(event, Event::SequenceEnd | Event::MappingEnd);
        let before = self.text.get(self.end..range.start).filter(|_| !is_end && self.brackets == 0);
        let at = before.and_then(|before| self.between(before)).map(|at| self.end + at);
        let inside = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let rest = self.text.get(range.start..).unwrap_or_default();
                let has_brackets = rest.starts_with(['[', '{']);
                self.brackets += usize::from(has_brackets);
                self.open.push(has_brackets);
                self.end = self.end.max(range.start);
                None
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if self.open.pop() == Some(true) {
                    self.brackets -= 1;
                    self.end = range.end;
                }
                None
            }
            Event::Scalar(_, style, ..) => {
                let start = self.end;
                self.end = start.max(range.end);
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let block = self.text.get(start..range.end).filter(|_| is_block);
                block.and_then(in_block).map(|at| start + at)
            }
            Event::Alias(_) => {
                self.end = self.end.max(range.end);
                None
            }
            _ => None,
        };
        at.or(inside).map(|at| self.text[..at].matches('\n').count() + 1)
    }

    /// Where a line begins with a tab in what stands between two values: spaces, comments and indicators.
    fn between(&self, text: &str) -> Option<usize> {
        let before = self.text[..self.end].rsplit('\n').next().unwrap_or_default();
        let is_whole = before.trim_start_matches([' ', '-', '?']).is_empty();
        let mut at = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if (index > 0 || is_whole) && begins_with_tab(line) {
                return Some(at);
            }
            at += line.len();
        }
        None
    }
}

/// Where a line of a block scalar has a tab before it is indented as the first one is. The scalar's indicator
/// is in the text, behind what names it.
fn in_block(text: &str) -> Option<usize> {
    let header_at = text.find(['|', '>'])?;
    let header = text[header_at..].split_inclusive('\n').next()?;
    if header.split('#').next()?.contains(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let start = header_at + header.len();
    let (mut at, mut indent) = (start, None);
    for line in text[start..].split_inclusive('\n') {
        let rest = line.trim_start_matches(' ');
        let spaces = line.len() - rest.len();
        if rest.starts_with('\t') && indent.is_none_or(|indent| spaces < indent) {
            return Some(at);
        }
        if !rest.trim_end().is_empty() {
            indent.get_or_insert(spaces);
        }
        at += line.len();
    }
    None
}
