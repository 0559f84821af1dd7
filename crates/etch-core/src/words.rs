//! Enums whose variants users read: in conditions, reports and metric labels.

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
