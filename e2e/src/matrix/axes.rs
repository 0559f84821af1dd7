//! The axes of the matrix, and which of their combinations exist.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};

/// An axis: words for its values, in order.
macro_rules! axis {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$about])* $value,)* }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }

            fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }
    };
}
pub(super) use axis;

axis! {
    /// How a CRD converts its objects.
    Conversion {
        /// Only by their `apiVersion`.
        None = "none",
        /// By a webhook that knows all fields.
        New = "new",
        /// By a webhook from before the defaulted fields, which drops them.
        Old = "old",
    }
}

axis! {
    /// What mutating admission does to objects.
    Admission {
        /// There is none.
        None = "plain",
        /// A webhook adds an annotation at any version.
        Stamps = "stamps",
        /// A webhook removes `.spec.color` at v1. By the usual `matchPolicy`, requests at other versions
        /// reach it too.
        Strips = "strips",
    }
}

axis! {
    /// What is requested.
    Verb {
        /// POST of an object without any value that has a default.
        Create = "create",
        /// The same by an apply.
        CreateByApply = "create-by-apply",
        /// PUT of what is read, with one field more.
        Update = "update",
        /// PUT of what is read without any value that has a default, as a client sends it that does not know
        /// these fields.
        Replace = "replace",
        /// JSON patch that adds a field.
        JsonPatch = "json-patch",
        /// JSON patch that removes the value of a default.
        Remove = "remove",
        /// Merge patch that adds a field.
        MergePatch = "merge-patch",
        /// Apply of one field.
        Apply = "apply",
        /// Apply of only the identity.
        Identity = "identity",
        /// Merge patch of only the uid.
        Empty = "empty",
        /// DELETE, which a finalizer holds up.
        Delete = "delete",
    }
}

axis! {
    /// What the request addresses.
    Part {
        /// The object.
        Main = "main",
        /// Its status.
        Status = "status",
        /// Its scale.
        Scale = "scale",
    }
}

axis! {
    /// Who owns the fields of the object before the request: one manager, at one version.
    Owners {
        /// The object is new: no owner.
        New = "new",
        /// No owner: `managedFields` were removed.
        Nobody = "nobody",
        /// By an apply at v1.
        AppliedV1 = "applied-v1",
        /// By an update at v1.
        UpdatedV1 = "updated-v1",
        /// By an update at v1beta1, which has the same schema.
        UpdatedV1beta1 = "updated-v1beta1",
        /// By an apply at v1alpha1, which does not have the defaulted fields.
        AppliedV1alpha1 = "applied-v1alpha1",
        /// By an update at v1alpha1.
        UpdatedV1alpha1 = "updated-v1alpha1",
        /// By an apply at v0, which the CRD does not have any more.
        AppliedV0 = "applied-v0",
        /// By an update at v0.
        UpdatedV0 = "updated-v0",
        /// By an apply at v1alpha1 when that was the storage version: the bytes are at v1alpha1 too.
        StoredV1alpha1 = "stored-v1alpha1",
    }
}

/// The versions at which requests are sent: S, one with the same schema, one without the defaulted fields.
pub(super) const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// One CRD, and what acts on its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct World {
    /// How it converts.
    pub conversion: Conversion,
    /// Whether it has the status subresource.
    pub has_status: bool,
    /// What changes its objects.
    pub admission: Admission,
}

/// One request to an object of a world. `v1` is sent while only v1 is served, `v1beta1` while v1alpha1 is
/// not, `v1alpha1` while all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// What is requested.
    pub verb: Verb,
    /// Of which part.
    pub part: Part,
    /// At which version.
    pub version: &'static str,
    /// Who owned the object before.
    pub owners: Owners,
}

impl World {
    /// All worlds.
    pub fn all() -> Vec<Self> {
        let mut worlds = Vec::new();
        for conversion in Conversion::ALL.iter().copied() {
            for has_status in [true, false] {
                for admission in Admission::ALL.iter().copied() {
                    worlds.push(Self { conversion, has_status, admission });
                }
            }
        }
        worlds
    }

    /// All requests that exist here.
    pub fn cells(self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for verb in Verb::ALL.iter().copied() {
            for part in Part::ALL.iter().copied() {
                for version in VERSIONS {
                    for owners in Owners::ALL.iter().copied() {
                        cells.push(Cell { verb, part, version, owners });
                    }
                }
            }
        }
        cells.retain(|cell| cell.exists(self));
        cells
    }
}

impl Cell {
    /// The rules by which combinations are left out.
    fn exists(self, world: World) -> bool {
        let Self { verb, part, version, owners } = self;
        let creates = matches!(verb, Verb::Create | Verb::CreateByApply);
        // Only what is new has no owners yet.
        creates == (owners == Owners::New)
            && match part {
                Part::Main => true,
                // Without the subresource there is no such path. It is neither created nor deleted.
                Part::Status => world.has_status && !creates && !matches!(verb, Verb::Delete | Verb::Remove),
                // A Scale has none of the fields, and Etch sends it nothing.
                Part::Scale => matches!(verb, Verb::Update | Verb::JsonPatch | Verb::MergePatch | Verb::Apply),
            }
            // What v1alpha1 does not have cannot be removed there.
            && (verb != Verb::Remove || version != "v1alpha1")
    }

    /// As an object's name.
    pub fn name(self) -> String {
        let Self { verb, part, version, owners } = self;
        format!("{}-{}-{version}-{}", verb.word(), part.word(), owners.word())
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = if self.has_status { "status" } else { "whole" };
        write!(f, "{}-{status}-{}", self.conversion.word(), self.admission.word())
    }
}

impl FromStr for World {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split('-').collect();
        let read = || {
            let [conversion, status @ ("status" | "whole"), admission] = words[..] else { return None };
            Some(Self {
                conversion: Conversion::of_word(conversion)?,
                has_status: status == "status",
                admission: Admission::of_word(admission)?,
            })
        };
        read().with_context(|| format!("{text} is no world of the matrix"))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, part, version, owners } = self;
        write!(f, "{} {} {version} {}", verb.word(), part.word(), owners.word())
    }
}

impl FromStr for Cell {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let read = || {
            let [verb, part, version, owners] = words[..] else { return None };
            Some(Self {
                verb: Verb::of_word(verb)?,
                part: Part::of_word(part)?,
                version: VERSIONS.into_iter().find(|known| *known == version)?,
                owners: Owners::of_word(owners)?,
            })
        };
        read().with_context(|| format!("{text} is no cell of the matrix"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_and_cells_are_read_as_they_are_shown() {
        for world in World::all() {
            assert_eq!(world.to_string().parse::<World>().ok(), Some(world));
            for cell in world.cells() {
                assert_eq!(cell.to_string().parse::<Cell>().ok(), Some(cell));
            }
        }
    }
}
