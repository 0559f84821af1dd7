//! Words that users read: the variants of enums in conditions, reports and metric labels, and numbers of
//! things.

/// Declares an enum with a list of all its variants and the word for each, so that a variant that is added is
/// in the list too.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$documentation:meta])* $variant:ident,)* }) => {
        $(#[$attribute])*
        pub enum $name { $($(#[$documentation])* $variant,)* }

        impl $name {
            /// Every variant, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word that users read: the variant's name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),* }
            }
        }
    };
}

pub use words;

/// A number and what is counted: `1 object`, `2 objects`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The first `shown` of `all` names, of which these are known, and how many more there are:
/// `a, b and 3 more`.
pub fn first(names: &[impl AsRef<str>], all: u64, shown: usize) -> String {
    let mut text = String::new();
    let named = names.iter().take(shown);
    let more = all.saturating_sub(named.len() as u64);
    for (index, name) in named.enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        text.push_str(name.as_ref());
    }
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// The first characters of a text, and a sign where there are more.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, first};

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "object")), ["0 objects", "1 object", "2 objects"]);
    }

    #[test]
    fn the_first_names_are_followed_by_how_many_more_there_are() {
        assert_eq!(first(&["a", "b"], 2, 3), "a, b");
        assert_eq!(first(&["a", "b", "c"], 3, 2), "a, b and 1 more");
        assert_eq!(first(&["a", "b"], 9, 5), "a, b and 7 more");
        assert_eq!(first(&[""; 0], 0, 5), "");
    }
}
