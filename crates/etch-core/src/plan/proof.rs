//! Why Etch concludes that etcd holds the defaults that an object shows, with the observed facts behind each
//! conclusion.
//!
//! Each place in the code that draws such a conclusion names its proof; `e2e/tests/libraries` lists these
//! places.

use crate::words::words;

words! {
    /// What shows that etcd holds a default.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Proof {
        /// No default applies anywhere in the object: whatever etcd holds, filling adds nothing.
        NothingToFill,
        /// A pass processed the object, and its resource version is the same since.
        UnchangedSincePass,
        /// A client wrote the object after the schema was served, with a request that stores what it shows.
        WrittenSince,
        /// A write that would have stored the default left the resource version alone.
        WriteChangedNothing,
        /// A write changed the resource version, and its answer shows every default, for an object of which
        /// such a write stores what the answer shows.
        WriteAnswered,
        /// A repeat of a write left alone the resource version that the write had made.
        RepeatChangedNothing,
        /// A dry run without the value was answered with what the new default gives: the server filled that
        /// in, so etcd holds the old value.
        DryRunShowsNewDefault,
        /// The bytes in etcd.
        Bytes,
    }
}

impl Proof {
    /// Whether it rests on a pass of Etch.
    pub fn is_of_pass(self) -> bool {
        self == Self::UnchangedSincePass
    }

    /// Whether it rests on what an API server that lags behind may leave out: the field that a default is in.
    pub fn needs_the_schema(self) -> bool {
        self == Self::NothingToFill
    }

    /// The rows of `docs/apiserver.md` that were observed, and that the conclusion rests on.
    pub fn rows(self) -> &'static [&'static str] {
        match self {
            Self::NothingToFill => &["R1", "R2"],
            Self::UnchangedSincePass => &["W1"],
            Self::WrittenSince => &["W1", "W10", "W25", "matrix"],
            Self::WriteChangedNothing => &["W1"],
            Self::WriteAnswered => &["W2", "W6", "matrix"],
            Self::RepeatChangedNothing => &["W1", "W6"],
            Self::DryRunShowsNewDefault => &["W23"],
            Self::Bytes => &["R1"],
        }
    }
}
