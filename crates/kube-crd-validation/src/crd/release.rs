//! The releases of Kubernetes whose answers are known.

use std::fmt;

/// A release of Kubernetes, by its minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(u32);

impl Release {
    /// Every release whose answers are known, the oldest first.
    pub const ALL: [Self; 4] = [Self(34), Self(35), Self(36), Self(37)];
    /// The newest of them.
    pub const NEWEST: Self = Self(37);
    /// The oldest of them.
    pub const OLDEST: Self = Self(34);

    /// The release with this minor version, if its answers are known.
    pub fn of_minor(minor: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|release| release.0 == minor)
    }

    /// The minor version.
    pub fn minor(self) -> u32 {
        self.0
    }
}

/// `1.37`
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}
