//! Reading a schema path as it is shown: `.spec.foo[].bar{}."a.b"`.
//! An index or a key, as in a place of an object, is not part of a schema.

use std::iter::Peekable;
use std::str::{Chars, FromStr};

use super::{Path, Step};

/// Why a text is not a schema path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Something stands where a step has to begin.
    #[error("expected `.name`, `[]` or `{{}}` at character {at}")]
    NoStep {
        /// Counted from one.
        at: usize,
    },
    /// The same, in a path with `[*]`.
    #[error("expected `.name` or `[*]` at character {at}")]
    NoStarStep {
        /// Counted from one.
        at: usize,
    },
    /// A name in double quotes has no end, or an escape in it none of JSON's or of those that are shown.
    #[error("the quoted name is not closed or not well escaped before character {at}")]
    BadName {
        /// Counted from one.
        at: usize,
    },
}

impl FromStr for Path {
    type Err = PathError;

    /// Reads what `Display` writes; `.` alone is the whole object.
    fn from_str(text: &str) -> Result<Self, PathError> {
        read(text, |reader, first| match first {
            '[' => (reader.next() == Some(']')).then_some(Step::Items),
            '{' => (reader.next() == Some('}')).then_some(Step::Values),
            _ => None,
        })
    }
}

impl Path {
    /// Reads a path in which `[*]`, and nothing else, stands for the items of a list and the values of a map.
    ///
    /// # Errors
    /// The text is no such path.
    pub fn with_stars(text: &str) -> Result<Self, PathError> {
        let star = |reader: &mut Reader<'_>, first: char| {
            (first == '[' && reader.next() == Some('*') && reader.next() == Some(']')).then_some(Step::Items)
        };
        read(text, star).map_err(|error| match error {
            PathError::NoStep { at } => PathError::NoStarStep { at },
            other => other,
        })
    }
}

/// Reads a path. `element` reads what is no name, from its first character on.
fn read(text: &str, element: fn(&mut Reader<'_>, char) -> Option<Step>) -> Result<Path, PathError> {
    if text == "." {
        return Ok(Path::root());
    }
    let mut reader = Reader { rest: text.chars().peekable(), at: 0 };
    let mut path = Path::root();
    while let Some(first) = reader.next() {
        path.push(match first {
            '.' => Step::Field(reader.name()?),
            _ => element(&mut reader, first).ok_or(PathError::NoStep { at: reader.at })?,
        });
    }
    match path.is_root() {
        true => Err(PathError::NoStep { at: 1 }),
        false => Ok(path),
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// How many characters were read.
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        self.at += 1;
        self.rest.next()
    }

    fn name(&mut self) -> Result<String, PathError> {
        if self.rest.peek() == Some(&'"') {
            self.next();
            return self.quoted().ok_or(PathError::BadName { at: self.at });
        }
        let mut name = String::new();
        while let Some(next) = self.rest.peek().filter(|next| !matches!(next, '.' | '[' | '{' | '"')) {
            name.push(*next);
            self.next();
        }
        match name.is_empty() {
            true => Err(PathError::NoStep { at: self.at }),
            false => Ok(name),
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            name.push(match self.next()? {
                '"' => return Some(name),
                '\\' => match self.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0' => '\0',
                    'u' => self.code_point()?,
                    plain @ ('"' | '\\' | '\'') => plain,
                    _ => return None,
                },
                plain => plain,
            });
        }
    }

    /// `{1f600}`
    fn code_point(&mut self) -> Option<char> {
        let mut code = 0_u32;
        if self.next()? != '{' {
            return None;
        }
        loop {
            match self.next()? {
                '}' => return char::from_u32(code),
                digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_shown() {
        for text in [
            ".",
            ".spec",
            ".spec.foo[].bar{}.baz",
            r#"."a.b"[]{}"#,
            r#".spec."".x"#,
            r#".spec."say \"hi\"\\"."#.trim_end_matches('.'),
            r#".spec."a[\n\u{1}""#,
        ] {
            let path: Path = text.parse().expect(text);
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn a_path_with_stars_has_no_other_form_of_elements() {
        let path = Path::with_stars(r#".a[*]."b[*]"[*]"#).expect("a path");
        assert_eq!(path.to_string(), r#".a[]."b[*]"[]"#);
        assert_eq!(Path::with_stars("."), Ok(Path::root()));
        for (text, at) in [("a", 1), (".a[]", 4), (".a{}", 3), (".a[0]", 4), (".a[*", 5), (".a[*].b[]", 9)] {
            let error = Path::with_stars(text).expect_err(text);
            assert_eq!(error.to_string(), format!("expected `.name` or `[*]` at character {at}"), "{text}");
        }
        assert!(".a[*]".parse::<Path>().is_err());
    }

    #[test]
    fn says_where_a_text_is_no_path() {
        let cases = [
            ("", PathError::NoStep { at: 1 }),
            ("spec", PathError::NoStep { at: 1 }),
            (".spec.", PathError::NoStep { at: 6 }),
            (".spec[0]", PathError::NoStep { at: 7 }),
            (r#".spec["a"]"#, PathError::NoStep { at: 7 }),
            (".spec{", PathError::NoStep { at: 7 }),
            (r#".spec."a"#, PathError::BadName { at: 9 }),
            (r#".spec."\q""#, PathError::BadName { at: 9 }),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Path>(), Err(error), "{text}");
        }
    }
}
