//! Text that Etch did not write, in lines of its own: control characters are escaped, for terminals, and what
//! is too long or too much is cut.

use std::borrow::Cow;

use etch_core::words;

/// How many names a line shows.
const NAMED: usize = 3;

/// The text with control characters as `\u{1b}`, and line breaks as spaces: a file must not move the cursor
/// of its reader.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(' '),
            character if character.is_control() => shown.extend(character.escape_unicode()),
            character => shown.push(character),
        }
    }
    shown.into()
}

/// A text with an ellipsis in place of what is beyond so many characters.
pub fn shortened(text: &str, room: usize) -> String {
    match text.char_indices().nth(room) {
        None => text.to_owned(),
        Some(_) => text.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// The first few names, and how many more there are.
pub fn first(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    words::first(&names, names.len() as u64, NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(plain("\u{1b}[31mred\nnext"), "\\u{1b}[31mred next");
        assert!(matches!(plain("as it is, ü"), Cow::Borrowed(_)));
    }
}
