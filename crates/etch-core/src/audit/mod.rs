//! Which defaults of an object etcd holds: by its bytes, or by evidence in its view.

mod exact;
mod explain;
mod places;
#[cfg(test)]
mod tests;
mod totals;
mod view;

use std::fmt;

use kube_structural_schema::path::Path;

pub use exact::{Exact, by_bytes};
pub use explain::{DefaultExplanation, Rules, explain};
pub use places::places;
pub use totals::{Lacking, Totals};
pub use view::{by_view, is_due};

/// The state of one default, or of all defaults of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// etcd holds the value.
    Stored,
    /// The value is shown, and nothing shows whether etcd holds it.
    Unknown,
    /// Not even the view has the value: the object is stored at a version without it (fact R2).
    Gap,
    /// The value is shown, and etcd does not hold it.
    Phantom,
}

/// One default that etcd does not hold, or may not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The topmost place, in the object's own terms.
    pub path: Path,
    /// How sure it is; never `Stored`.
    pub state: State,
}

impl Missing {
    /// What is missing where nothing shows which default is.
    pub fn anywhere() -> Self {
        Self { path: Path::root(), state: State::Unknown }
    }

    /// Records what else is known of the same place; false for another place.
    fn is_also(&mut self, other: &Self) -> bool {
        let is_same = self.path == other.path;
        if is_same {
            self.state = self.state.max(other.state);
        }
        is_same
    }
}

/// The state of an object, from that of its defaults: the worst of them.
pub fn overall(missing: &[Missing]) -> State {
    missing.iter().map(|missing| missing.state).max().unwrap_or(State::Stored)
}

impl State {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Unknown => "unknown",
            Self::Gap => "gap",
            Self::Phantom => "phantom",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
