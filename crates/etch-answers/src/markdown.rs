//! Markdown as GitHub and GitLab show it: headings, tables and code.
//! Escapes all text that Etch did not write.

use std::io::{self, Write};

use etch_core::words::cut;

use super::plain;

/// How many rows a table has; a comment on a pull request holds 65 536 characters.
const ROWS: usize = 50;
/// How long a value is that a cell shows.
const VALUE: usize = 200;

/// A text in a code span, where it is nothing but text: no mention, no link, no HTML.
pub fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A span must not begin or end with a backtick of its own, nor be empty.
    let space = if text.is_empty() || text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A value in a code span, its beginning only where it is long.
pub fn value(text: &str) -> String {
    code(&cut(text, VALUE))
}

/// A command in a block, to be copied.
///
/// # Errors
/// What the writer answers.
pub fn write_command(out: &mut dyn Write, indent: &str, command: &str) -> io::Result<()> {
    let command = plain(command);
    let longest = command.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{indent}{fence}sh\n{indent}{command}\n{indent}{fence}")
}

/// Rows under heads. Cells are Markdown.
#[derive(Debug)]
pub struct MarkdownTable {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    left: u64,
}

impl MarkdownTable {
    /// An empty table.
    pub fn new(heads: impl IntoIterator<Item = &'static str>) -> Self {
        Self { heads: heads.into_iter().collect(), rows: Vec::new(), left: 0 }
    }

    /// Adds a row with a cell for each column; what is beyond a screen of them is counted.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        if self.rows.len() == ROWS {
            self.left += 1;
            return;
        }
        // A bar ends a cell even in code.
        self.rows.push(cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect());
    }

    /// Writes the table, with how many rows are left out, and an empty line; nothing if there are no rows.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(out, "| {} |", self.heads.join(" | "))?;
        writeln!(out, "|{}", "---|".repeat(self.heads.len()))?;
        for row in &self.rows {
            writeln!(out, "| {} |", row.join(" | "))?;
        }
        if self.left > 0 {
            writeln!(out, "\nand {} more", self.left)?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_stays_text() {
        for (text, expected) in [
            (".spec.a", "`.spec.a`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("", "`  `"),
            ("@team\n# <b>", "`@team # <b>`"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
        assert_eq!(value(&"x".repeat(VALUE + 1)), format!("`{}…`", "x".repeat(VALUE)));
        let mut out = Vec::new();
        write_command(&mut out, "  ", "echo ```").expect("memory");
        assert_eq!(String::from_utf8_lossy(&out), "  ````sh\n  echo ```\n  ````\n");
    }

    #[test]
    fn a_table_has_a_screen_of_rows_and_counts_the_rest() {
        let mut table = MarkdownTable::new(["A", "B"]);
        for number in 0..ROWS + 2 {
            table.row([number.to_string(), code("a|b")]);
        }
        let mut out = Vec::new();
        table.write(&mut out).expect("memory");
        let text = String::from_utf8_lossy(&out);
        assert!(text.starts_with("| A | B |\n|---|---|\n| 0 | `a\\|b` |\n"), "{text}");
        assert!(text.ends_with("\n\nand 2 more\n\n"), "{text}");
    }
}
