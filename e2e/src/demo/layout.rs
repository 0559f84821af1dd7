//! Text in a given width.
//! Colours come later: they have no width, and would be counted.

/// The width of everything that is shown, in characters.
pub(super) const WIDTH: usize = 100;

/// The blanks before every line of a chapter.
pub(super) const MARGIN: usize = 4;

/// Between the columns of a table.
const GAP: &str = "  ";

/// The text at exactly this width: cut with `…`, or filled with blanks.
pub(super) fn fitted(text: &str, width: usize) -> String {
    format!("{:width$}", cut(text, width))
}

/// The text at no more than this width, cut with `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The lines of a table, the first row being its head. Columns are as wide as their widest cell; the last
/// takes what is left.
pub(super) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| fitted(cell, *width)).collect();
        cut(cells.join(GAP).trim_end(), WIDTH - MARGIN)
    };
    rows.iter().map(line).collect()
}

/// The words of a text in lines of no more than `width`, except longer words.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, cut, fitted, table, wrapped};

    #[test]
    fn text_is_cut_or_filled_by_characters() {
        assert_eq!(fitted("ünïcode", 9), "ünïcode  ");
        assert_eq!(cut("ünïcode", 7), "ünïcode");
        assert_eq!(cut("ünïcode", 6), "ünïco…");
    }

    #[test]
    fn tables_align_and_keep_to_the_width() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let long = "x".repeat(2 * WIDTH);
        let lines = table(&[row(["NAME", "N", "WHY"]), row(["crontab/a", "10", &long])]);
        assert_eq!(lines[0], "NAME       N   WHY");
        assert!(lines[1].starts_with("crontab/a  10  xxx") && lines[1].ends_with('…'), "{lines:?}");
        assert!(lines[1].chars().count() <= WIDTH);
    }

    #[test]
    fn words_wrap() {
        assert_eq!(wrapped("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
    }
}
