//! Tables as kubectl prints them: a head in capitals, columns three spaces apart, no lines.
//! It cuts nothing; a column that is empty in every row is left out.

use std::io::{self, Write};

use super::{Style, Tone, plain};

const GAP: &str = "   ";
/// The last column is broken into lines only where that leaves it readable.
const NARROWEST: usize = 24;

/// Rows under heads.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
}

/// How a column's text is aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Align {
    /// Texts.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// One text in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Table {
    /// An empty table.
    pub fn new(heads: impl IntoIterator<Item = &'static str>) -> Self {
        Self { columns: heads.into_iter().map(|head| (head, Align::Left)).collect(), rows: Vec::new() }
    }

    /// The same, with numbers under these heads.
    #[must_use]
    pub fn numbers(mut self, heads: &[&str]) -> Self {
        for (head, align) in &mut self.columns {
            *align = if heads.contains(head) { Align::Right } else { *align };
        }
        self
    }

    /// Adds a row, with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells: Vec<_> = cells.into_iter().collect();
        cells.resize(self.columns.len(), Cell::default());
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes an empty line and the table; nothing if there are no rows.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write_below(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write(out, style)
    }

    /// Writes head and rows; nothing if there are no rows. Where a line is too short for the last column, its
    /// text continues below.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let columns: Vec<Column> = self
            .columns
            .iter()
            .enumerate()
            .filter(|(index, _)| self.rows.iter().any(|row| !row[*index].text.is_empty()))
            .map(|(index, (head, align))| {
                let cells = self.rows.iter().map(|row| width(&row[index].text));
                let width = cells.chain([width(head)]).max().unwrap_or_default();
                Column { index, align: *align, width }
            })
            .collect();
        let heads: Vec<Cell> = self
            .columns
            .iter()
            .map(|(head, _)| Cell { text: (*head).to_owned(), tone: Tone::Strong })
            .collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            line(out, style, &columns, row)?;
        }
        Ok(())
    }
}

/// A column that is printed.
struct Column {
    index: usize,
    align: Align,
    width: usize,
}

fn line(out: &mut dyn Write, style: &Style, columns: &[Column], row: &[Cell]) -> io::Result<()> {
    let Some((last, before)) = columns.split_last() else { return Ok(()) };
    let mut indent = 0;
    for column in before {
        let cell = &row[column.index];
        let space = " ".repeat(column.width - width(&cell.text));
        let text = style.paint(cell.tone, &cell.text);
        match column.align {
            Align::Left => write!(out, "{text}{space}{GAP}")?,
            Align::Right => write!(out, "{space}{text}{GAP}")?,
        }
        indent += column.width + GAP.len();
    }
    let cell = &row[last.index];
    if last.align == Align::Right {
        let space = last.width - width(&cell.text);
        return writeln!(out, "{}{}", " ".repeat(space), style.paint(cell.tone, &cell.text));
    }
    let room = style.width.map(|width| width.saturating_sub(indent)).filter(|room| *room >= NARROWEST);
    for (index, part) in wrapped(&cell.text, room).into_iter().enumerate() {
        if index > 0 {
            write!(out, "{}", " ".repeat(indent))?;
        }
        writeln!(out, "{}", style.paint(cell.tone, part))?;
    }
    Ok(())
}

impl Cell {
    /// A text with a tone.
    pub fn new(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: plain(text.as_ref()).into_owned(), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text in lines that fit, broken at spaces only.
fn wrapped(text: &str, room: Option<usize>) -> Vec<&str> {
    let Some(room) = room else { return vec![text] };
    let (mut lines, mut rest) = (Vec::new(), text);
    while width(rest) > room {
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(index, _)| index);
        // A word that is longer than the line stays whole.
        let Some(space) = rest[..=end.min(rest.len() - 1)].rfind(' ').or_else(|| rest.find(' ')) else {
            break;
        };
        lines.push(&rest[..space]);
        rest = rest[space..].trim_start();
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table, style: Style) -> String {
        let mut out = Vec::new();
        table.write(&mut out, &style).expect("memory");
        String::from_utf8(out).expect("text")
    }

    fn table() -> Table {
        let mut table = Table::new(["NAME", "OBJECTS", "NOTE"]).numbers(&["OBJECTS"]);
        table.row(["crontabs".into(), "12".into(), Cell::new("one two three four five six", Tone::Bad)]);
        table.row(["é".into(), "1".into(), "\u{1b}[2J".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_control_characters_shown() {
        let expected = "\
NAME       OBJECTS   NOTE
crontabs        12   one two three four five six
é                1   \\u{1b}[2J
";
        assert_eq!(printed(&table(), Style::default()), expected);
    }

    #[test]
    fn the_last_column_goes_on_below() {
        let expected = "\
NAME       OBJECTS   NOTE
crontabs        12   one two three four five
                     six
é                1   \\u{1b}[2J
";
        assert_eq!(printed(&table(), Style { color: false, width: Some(46) }), expected);
        assert!(
            !printed(&table(), Style { color: false, width: Some(40) }).contains("\n     "),
            "too narrow"
        );
        assert_eq!(wrapped("aaaaaaaa bbb ccc", Some(4)), ["aaaaaaaa", "bbb", "ccc"]);
    }

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let mut table = Table::new(["NAME", "REASON", "NOTE"]);
        table.row(["a".into(), "".into()]);
        assert_eq!(printed(&table, Style::default()), "NAME\na\n");
        table.row(["b".into(), "".into(), "held".into()]);
        assert_eq!(printed(&table, Style::default()), "NAME   NOTE\na      \nb      held\n");
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let colored = printed(&table(), Style { color: true, width: None });
        assert!(colored.contains("\u{1b}[31mone two three four five six\u{1b}[0m\n"), "{colored}");
        assert!(colored.contains("\u{1b}[1mNAME\u{1b}[0m       "), "{colored}");
    }
}
