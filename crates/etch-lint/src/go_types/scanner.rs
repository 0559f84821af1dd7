//! Go's `text/scanner`, as far as controller-gen needs it.

/// A piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// There is nothing left.
    End,
    /// A name.
    Name,
    /// A whole number, in any of Go's notations.
    Whole,
    /// A number with a fraction or an exponent.
    Float,
    /// A text in double quotes or backquotes.
    Quoted,
    /// Any other letter.
    Sign(char),
}

/// Reads tokens one by one.
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// Where the next letter stands.
    at: usize,
    /// Where the last token starts.
    pub(super) start: usize,
    /// The last token; empty once a space behind it was skipped: Go's scanner forgets the text then.
    token: &'a str,
    /// Whether digits make numbers, or else signs.
    pub(super) has_numbers: bool,
    /// Whether a token is malformed.
    pub(super) has_failed: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, start: 0, token: "", has_numbers: true, has_failed: false }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text of the last token.
    pub(super) fn token(&self) -> &'a str {
        self.token
    }

    /// The text from a place to the end of the last token.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..(self.start + self.token.len()).max(start)]
    }

    /// The next letter.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The next letter that is not a space.
    pub(super) fn peek_behind_space(&mut self) -> Option<char> {
        let space = self.rest().len() - self.rest().trim_start_matches(is_space).len();
        if space > 0 {
            self.at += space;
            self.token = "";
        }
        self.peek()
    }

    /// Reads the next token.
    pub(super) fn scan(&mut self) -> Token {
        self.peek_behind_space();
        self.start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(first) if first == '_' || first.is_alphabetic() => {
                self.skip_while(|letter| letter == '_' || letter.is_alphanumeric());
                Token::Name
            }
            Some(first) if first.is_ascii_digit() && self.has_numbers => self.number(false),
            Some('.') => {
                self.next();
                let is_number = self.has_numbers && self.peek().is_some_and(|next| next.is_ascii_digit());
                if is_number { self.number(true) } else { Token::Sign('.') }
            }
            Some(quote @ ('"' | '`')) => {
                self.next();
                self.quoted(quote);
                Token::Quoted
            }
            Some(other) => {
                self.next();
                Token::Sign(other)
            }
        };
        self.token = &self.text[self.start..self.at];
        token
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip_while(&mut self, is_part: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_part) {
            self.next();
        }
    }

    fn quoted(&mut self, quote: char) {
        loop {
            match self.next() {
                None => return self.has_failed = true,
                Some(letter) if letter == quote => return,
                Some('\\') if quote == '"' => self.escape(),
                Some(_) => {}
            }
        }
    }

    fn escape(&mut self) {
        let (count, radix) = match self.peek() {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '"') => {
                self.next();
                return;
            }
            Some('0'..='7') => (3, 8),
            Some(kind @ ('x' | 'u' | 'U')) => {
                self.next();
                (
                    if kind == 'x' {
                        2
                    } else if kind == 'u' {
                        4
                    } else {
                        8
                    },
                    16,
                )
            }
            _ => return self.has_failed = true,
        };
        for _ in 0..count {
            if !self.peek().is_some_and(|digit| digit.is_digit(radix)) {
                return self.has_failed = true;
            }
            self.next();
        }
    }

    /// A number, whose point is read if it begins with one. A malformed one is read as far as Go reads it.
    fn number(&mut self, mut has_point: bool) -> Token {
        let (mut radix, mut prefix) = (10, None);
        let (mut has_digits, mut is_out_of_range) = (false, false);
        let mut token = if has_point { Token::Float } else { Token::Whole };
        if !has_point {
            if self.peek() == Some('0') {
                self.next();
                let kind = self.peek().map(|letter| letter.to_ascii_lowercase());
                (radix, prefix) = match kind {
                    Some('x') => (16, kind),
                    Some('o') => (8, kind),
                    Some('b') => (2, kind),
                    _ => (8, Some('0')),
                };
                if prefix == Some('0') {
                    has_digits = true;
                } else {
                    self.next();
                }
            }
            has_digits |= self.digits(radix, &mut is_out_of_range);
            if self.peek() == Some('.') {
                self.next();
                has_point = true;
            }
        }
        if has_point {
            token = Token::Float;
            self.has_failed |= matches!(prefix, Some('o' | 'b'));
            has_digits |= self.digits(radix, &mut is_out_of_range);
        }
        self.has_failed |= !has_digits;
        match self.peek().map(|letter| letter.to_ascii_lowercase()) {
            Some(exponent @ ('e' | 'p')) => {
                let fits =
                    if exponent == 'e' { matches!(prefix, None | Some('0')) } else { prefix == Some('x') };
                self.next();
                token = Token::Float;
                if matches!(self.peek(), Some('+' | '-')) {
                    self.next();
                }
                let has_exponent = self.digits(10, &mut false);
                self.has_failed |= !fits || !has_exponent;
            }
            _ => self.has_failed |= prefix == Some('x') && token == Token::Float,
        }
        self.has_failed |= token == Token::Whole && is_out_of_range;
        self.has_failed |= has_stray_separator(&self.text[self.start..self.at]);
        token
    }

    /// Skips digits with separators. Whether there is a digit.
    fn digits(&mut self, radix: u32, is_out_of_range: &mut bool) -> bool {
        let mut has_digit = false;
        while let Some(letter) = self.peek() {
            let is_digit = if radix == 16 { letter.is_ascii_hexdigit() } else { letter.is_ascii_digit() };
            if !is_digit && letter != '_' {
                break;
            }
            has_digit |= is_digit;
            *is_out_of_range |= is_digit && !letter.is_digit(radix);
            self.next();
        }
        has_digit
    }
}

/// Whether a separator stands anywhere but between digits. A prefix counts as a digit.
fn has_stray_separator(number: &str) -> bool {
    let lower = number.to_ascii_lowercase();
    let is_hexadecimal = lower.starts_with("0x");
    let has_prefix = is_hexadecimal || lower.starts_with("0o") || lower.starts_with("0b");
    let digits = if has_prefix { lower.replacen(['x', 'o', 'b'], "0", 1) } else { lower };
    let is_digit = |letter: Option<&u8>| match letter {
        Some(letter) if is_hexadecimal => letter.is_ascii_hexdigit(),
        Some(letter) => letter.is_ascii_digit(),
        None => false,
    };
    let bytes = digits.as_bytes();
    (0..bytes.len()).any(|at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        bytes[at] == b'_' && !(is_digit(before) && is_digit(bytes.get(at + 1)))
    })
}

fn is_space(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' ')
}
