//! Words that users read: the variants of enums in conditions, reports and metric labels, and numbers of things.

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

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "object")), ["0 objects", "1 object", "2 objects"]);
    }
}
