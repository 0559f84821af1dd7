//! How big a part of a pattern becomes, and what Go still accepts.
//! It must not parse.

/// Most instructions of a compiled pattern.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// Most levels of the parse tree.
const MAX_HEIGHT: u32 = 1000;
/// Most copies that nested `{n}` may make of one part.
const MAX_COPIES: u32 = 1000;

/// A part of a pattern: what the limits need to know of it.
#[derive(Clone, Copy)]
pub(super) struct Node {
    form: Form,
    /// The greatest product of nested repetition counts.
    copies: u32,
    /// Instructions.
    size: u64,
    /// Levels.
    height: u32,
}

/// Parts of the same form merge into one when they meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Literal,
    Sequence,
    Alternatives,
    Other,
}

impl Node {
    /// A single character.
    pub(super) fn literal() -> Self {
        Self { form: Form::Literal, ..Self::atom() }
    }

    /// A class of characters, an assertion, or nothing at all.
    pub(super) fn atom() -> Self {
        Self { form: Form::Other, copies: 1, size: 1, height: 1 }
    }

    /// `*`
    pub(super) fn starred(self) -> Self {
        self.wrapped(2)
    }

    /// `+` and `?`
    pub(super) fn looped(self) -> Self {
        self.wrapped(1)
    }

    /// `( )`
    pub(super) fn captured(self) -> Self {
        self.wrapped(2)
    }

    fn wrapped(self, more: u64) -> Self {
        Self { form: Form::Other, size: self.size.saturating_add(more), height: self.height + 1, ..self }
    }

    /// `{min,max}`; without a maximum there is no upper end.
    pub(super) fn counted(self, min: u32, max: Option<u32>) -> Self {
        let times = |count: u32| self.size.saturating_mul(u64::from(count));
        let (copies, size) = match (min, max) {
            // What is never there is not looked into.
            (_, Some(0)) => (1, 1),
            (_, Some(max)) => {
                (self.copies.saturating_mul(max), times(max).saturating_add(u64::from(max - min)))
            }
            (0, None) => (self.copies, self.size.saturating_add(2)),
            (_, None) => (self.copies.saturating_mul(min), times(min).saturating_add(1)),
        };
        Self { form: Form::Other, copies, size, height: self.height + 1 }
    }

    /// One after the other.
    pub(super) fn then(self, next: Self) -> Self {
        if self.form == Form::Literal && next.form == Form::Literal {
            return Self { size: self.size + next.size, ..self };
        }
        self.joined(next, Form::Sequence)
    }

    /// One or the other.
    pub(super) fn or(self, other: Self) -> Self {
        let either = self.joined(other, Form::Alternatives);
        Self { size: either.size.saturating_add(1), ..either }
    }

    fn joined(self, other: Self, form: Form) -> Self {
        let inner = |node: Self| if node.form == form { node.height } else { node.height + 1 };
        Self {
            form,
            copies: self.copies.max(other.copies),
            size: self.size.saturating_add(other.size),
            height: inner(self).max(inner(other)),
        }
    }

    pub(super) fn repeats_within_limit(self) -> bool {
        self.copies <= MAX_COPIES
    }

    pub(super) fn exceeded(self) -> Option<&'static str> {
        if self.size > MAX_SIZE {
            Some("expression too large")
        } else if self.height > MAX_HEIGHT {
            Some("expression nests too deeply")
        } else {
            None
        }
    }
}
