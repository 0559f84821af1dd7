//! The parts of a file of YAML as kubectl splits it, before it parses each part for itself.
//! Nothing here knows what YAML is: a line that begins with `---` separates, even inside a text.
//!
//! Source: k8s.io/apimachinery `pkg/util/yaml/decoder.go`.

use crate::malformed::Malformed;

const SEPARATOR: &str = "---";

/// A part of a file. kubectl reads one document of it, and nothing behind that.
#[derive(Debug, PartialEq)]
pub(crate) struct Part<'t> {
    pub(crate) text: &'t str,
    /// Where it begins, in bytes.
    pub(crate) at: usize,
    /// How many lines of the file are before it.
    pub(crate) lines: usize,
    /// How many separators are before its content.
    pub(crate) separators: usize,
}

/// Splits a text, until a line that separates has something other than a comment behind it.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = Result<Part<'_>, Malformed>> {
    let (mut start, mut line, mut separators) = (0, 0, 0);
    std::iter::from_fn(move || {
        let mut part = Part { text: "", at: start, lines: line, separators };
        for content in text.get(start..)?.split_inclusive('\n') {
            if let Some(behind) = content.strip_prefix(SEPARATOR).map(str::trim) {
                if !behind.is_empty() && !behind.starts_with('#') {
                    start = text.len() + 1;
                    let problem =
                        "only a comment may stand behind the --- that separates documents".to_owned();
                    return Some(Err(Malformed::Yaml { line: line + 1, problem }));
                }
                separators += 1;
                if !part.text.is_empty() {
                    // kubectl does not read this line again.
                    let read = part.text.len() + content.len();
                    (start, line) = (start + read, line + 1);
                    return Some(Ok(part));
                }
                part.separators = separators;
            }
            part.text = &text[start..start + part.text.len() + content.len()];
            line += 1;
        }
        start = text.len() + 1;
        (!part.text.is_empty()).then_some(Ok(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_with_a_separator_split() {
        let part = |text: &'static str, lines: usize, separators: usize| (text, lines, separators);
        let cases = [
            ("", vec![]),
            ("a", vec![part("a", 0, 0)]),
            ("---\na\n", vec![part("---\na\n", 0, 1)]),
            ("a\n--- # c\nb\n---", vec![part("a\n", 0, 0), part("b\n", 2, 1)]),
            ("a\n---\n---\nb\n", vec![part("a\n", 0, 0), part("---\nb\n", 2, 2)]),
            ("a\r\n---\r\nb", vec![part("a\r\n", 0, 0), part("b", 2, 1)]),
            ("a\n ---\nb", vec![part("a\n ---\nb", 0, 0)]),
            ("a\n\n---\n\n---\nb", vec![part("a\n\n", 0, 0), part("\n", 3, 1), part("b", 5, 2)]),
        ];
        for (text, expected) in cases {
            let read = parts(text).map(|part| part.expect("a separator alone"));
            let read: Vec<_> = read
                .inspect(|part| assert!(text[part.at..].starts_with(part.text)))
                .map(|Part { text, lines, separators, .. }| (text, lines, separators))
                .collect();
            assert_eq!(read, expected, "{text:?}");
        }
        for (text, line) in [("--- a", 1), ("----\n", 1), ("a: \"\n---b\"\n", 2), ("a\n---\nb\n--- {}\nc", 4)]
        {
            let last = parts(text).last().expect("a part");
            assert!(matches!(last, Err(Malformed::Yaml { line: at, .. }) if at == line), "{text:?}");
        }
    }
}
