//! Which DefaultsPolicy a command decides under: those of the cluster, or of files.
//! [`assign`] chooses one, for the operator too.

mod documents;
mod rules;
#[cfg(test)]
mod tests;

use std::time::Duration;

use etch_core::api::{Labels, Policies, assign};
use etch_core::crd::Crd;

pub use self::documents::{PolicyError, counted, of_documents};
pub use self::rules::{Rules, write_all};

/// The policies to decide under, or why they could not be read.
#[derive(Debug, Default)]
pub enum Known {
    /// There is nothing to read them from.
    #[default]
    Unasked,
    /// These are all.
    Read(Policies),
    /// Those of a cluster were not read.
    Unread(Unread),
}

/// Why the policies of a cluster were not read.
#[derive(Debug)]
pub enum Unread {
    /// Etch's CRDs are not installed.
    NotInstalled,
    /// The server refused, in these words.
    Refused(String),
}

impl Known {
    /// The policies; `None` if they were not read.
    pub fn policies(&self) -> Option<&Policies> {
        match self {
            Self::Read(policies) => Some(policies),
            Self::Unasked | Self::Unread(_) => None,
        }
    }

    /// How the operator treats the objects of a CRD.
    pub fn rules(&self, crd: &Crd, labels: &Labels) -> Rules {
        let Some(policies) = self.policies() else { return Rules::Assumed };
        let assigned = assign(policies, crd.name(), crd.group(), labels, Duration::ZERO);
        assigned.map_or(Rules::Unselected, |assigned| Rules::Governed(assigned.settings, assigned.ties))
    }

    /// What to note where the policies of the cluster were not read.
    pub fn note(&self) -> Option<String> {
        let why = match self {
            Self::Unasked | Self::Read(_) => return None,
            Self::Unread(Unread::NotInstalled) => "Etch's CRDs are not installed".to_owned(),
            Self::Unread(Unread::Refused(error)) => format!("cannot read DefaultsPolicies: {error}"),
        };
        Some(format!("{why}; assuming a policy without settings (see --policy)"))
    }
}
