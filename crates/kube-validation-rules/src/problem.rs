//! What is wrong with the text of an expression, and how cel-go shows it: with the line and a mark below it.
//!
//! Source: cel-go `common/{error,errors,source}.go`.

use std::fmt::Write as _;

/// The longest line that is shown, in bytes.
const LONGEST_LINE: usize = 16_384;

/// How many problems are shown.
const SHOWN: usize = 100;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) at: Position,
    pub(super) text: String,
}

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// From 1.
    pub(super) line: usize,
    /// From 0, in characters.
    pub(super) column: usize,
}

impl Position {
    /// The place of what begins at a byte.
    pub(super) fn of(source: &str, offset: u32) -> Self {
        let before = source.get(..offset as usize).unwrap_or(source);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        Self { line: 1 + before.matches('\n').count(), column }
    }
}

/// All problems as one text, in the order of their places.
pub(super) fn display(source: &str, problems: &[Problem]) -> String {
    let mut sorted: Vec<&Problem> = problems.iter().take(SHOWN).collect();
    sorted.sort_by_key(|problem| problem.at);
    let mut texts: Vec<String> = sorted.into_iter().map(|problem| shown(source, problem)).collect();
    if problems.len() > SHOWN {
        texts.push(format!("{} more errors were truncated", problems.len() - SHOWN));
    }
    texts.join("\n")
}

fn shown(source: &str, problem: &Problem) -> String {
    let Position { line, column } = problem.at;
    let mut text = format!("ERROR: <input>:{line}:{}: {}", column + 1, problem.text);
    let Some(snippet) = line.checked_sub(1).and_then(|line| source.split('\n').nth(line)) else {
        return text;
    };
    if snippet.len() > LONGEST_LINE {
        return text;
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "\n | {}\n | ", snippet.replace('\t', " "));
    let mut characters = snippet.chars();
    text.extend(
        characters.by_ref().take(column).map(|before| if before.len_utf8() > 1 { '．' } else { '.' }),
    );
    text.push(if characters.next().is_some_and(|marked| marked.len_utf8() > 1) { '＾' } else { '^' });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_as_cel_go_does() {
        let source = "self.é ==\n\tx";
        let problem =
            |offset, text: &str| Problem { at: Position::of(source, offset), text: text.to_owned() };
        let text = display(source, &[problem(12, "b"), problem(5, "a")]);
        assert_eq!(
            text,
            "ERROR: <input>:1:6: a\n | self.é ==\n | .....＾\nERROR: <input>:2:2: b\n |  x\n | .^"
        );
    }
}
