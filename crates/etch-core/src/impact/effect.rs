//! What an upgrade does to one object, and what of it is certain.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::decode::Undecodable;
use crate::plan::{Broken, Held};
use kube_structural_schema::finding::Refused;
use kube_structural_schema::json::DEPTH;
use kube_structural_schema::path::Path;

/// What an upgrade does to one object. Places are the object's own, the topmost ones, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Values that it shows afterwards and did not show before.
    pub appears: Vec<Path>,
    /// Defaults of the storage version that it shows only once a write stores them: it is stored at another
    /// version (fact R2).
    pub appears_on_write: Vec<Path>,
    /// Values that are others afterwards: they were never stored, and their default is another.
    pub changes: Vec<Path>,
    /// Values that it no longer shows, and that were never stored.
    pub disappears: Vec<Path>,
    /// Values that it no longer shows and that etcd still holds, until the next write destroys them
    /// (facts R4, W12).
    pub hidden: Vec<Path>,
    /// Stored values that are the old default, and that Etch then moves to the new one, or removes with a
    /// default that is gone.
    pub follows: Vec<Path>,
    /// Those of `changes` and `disappears` that would stay as they are if the present defaults were stored
    /// first.
    pub protected: Vec<Path>,
    /// Whether Etch then writes the object, which destroys what is `hidden`.
    pub dropped: bool,
    /// Why Etch then holds the object.
    pub held: Option<Held>,
    /// What makes it invalid afterwards, without values.
    pub problems: Vec<Problem>,
    /// What of this happens only if etcd holds what nothing shows, or does not hold it.
    pub open: Open,
    /// Places to which something else happens if etcd lacks what owners name: a claim can outlive its field
    /// (fact R5).
    pub claimed: Vec<Path>,
}

/// What may happen to an object: it depends on what etcd holds, and that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// The places, with what may happen there; sorted.
    pub places: Vec<(EffectKind, Path)>,
    /// What may be wrong with it.
    pub problems: Vec<Problem>,
}

impl Open {
    /// Whether everything is known.
    pub fn is_none(&self) -> bool {
        self.places.is_empty() && self.problems.is_empty()
    }

    /// Whether this is what may happen, and not what does.
    pub fn is_open(&self, effect: EffectKind, place: &Path) -> bool {
        self.places.iter().any(|(kind, open)| kind.is_like(effect) && open == place)
    }
}

/// One thing that is wrong with an object after an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// It breaks the new schema, so its creation elsewhere is refused; which writes of it are,
    /// [`Broken::refused`] has (fact C6).
    Invalid {
        /// What it breaks there.
        broken: Broken,
        /// Whether it breaks the old schema in the same way.
        before: bool,
    },
    /// It can no longer be read.
    Unreadable(Undecodable),
    /// An owner's entry names this version, which is removed: no apply to the object goes through.
    OwnedAt {
        /// The version.
        version: String,
    },
    /// Nothing shows at which version it is stored: at a removed one it can no longer be read.
    MaybeStoredAt {
        /// The versions that are removed.
        removed: Vec<String>,
        /// The storage version.
        storage: String,
    },
    /// Nothing shows at which version it is stored: at this one it loses fields before a webhook converts it.
    MaybeLosesFieldsAt {
        /// The version, whose schema no longer has them.
        version: String,
        /// The storage version.
        storage: String,
    },
    /// Nothing shows at which version it is stored: from another one it was converted by a webhook that the
    /// CRD no longer names.
    MaybeUnconverted {
        /// The other versions.
        versions: Vec<String>,
        /// The storage version.
        storage: String,
    },
    /// It is at another version than the storage version, and a webhook would have to convert it.
    NotConverted {
        /// The version that it is in.
        version: String,
        /// The version that it would have to be in.
        storage: String,
    },
    /// It is at a version that does not show all that the upgrade is about.
    PartlyShown {
        /// The version that it is in.
        version: String,
        /// The version that it would have to be in.
        storage: String,
    },
    /// The effect is unknown: the bytes in etcd cannot be read.
    Opaque {
        /// What they are, in a word or two.
        why: String,
    },
    /// The effect is unknown: the object is nested too deeply.
    TooDeep,
    /// Whether it will be valid is not known: a webhook makes of it what the storage version has.
    NotJudged {
        /// The version at which etcd holds it.
        version: String,
    },
}

/// What is reported of a place, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// A value comes.
    Appears,
    /// A value comes with the next write of the object.
    AppearsOnWrite,
    /// A value that was never stored becomes another.
    Changes,
    /// A stored value follows its default.
    Follows,
    /// A value that was never stored goes.
    Disappears,
    /// A stored value is no longer shown.
    Hidden,
    /// A stored value is no longer shown, and Etch destroys it.
    Dropped,
    /// Something is wrong with the object.
    Problem,
}

impl Problem {
    /// Whether it was there before the upgrade.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Invalid { before: true, .. })
    }

    /// The problem by its place in the schema: the same wherever in an object it is, and without the keys of
    /// maps.
    #[must_use]
    pub fn to_schema(&self) -> Self {
        match self {
            Self::Invalid { broken, before } => {
                let broken = Broken {
                    place: broken.place.to_schema(),
                    judged: broken.judged.as_ref().map(Path::to_schema),
                    ..broken.clone()
                };
                Self::Invalid { broken, before: *before }
            }
            other => other.clone(),
        }
    }

    /// Whether it reports only that something could not be found out.
    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Self::MaybeStoredAt { .. }
                | Self::MaybeLosesFieldsAt { .. }
                | Self::MaybeUnconverted { .. }
                | Self::NotConverted { .. }
                | Self::PartlyShown { .. }
                | Self::Opaque { .. }
                | Self::TooDeep
                | Self::NotJudged { .. }
        )
    }
}

impl Effect {
    /// What may happen where either of two things is stored. What Etch then does is as in the first that
    /// hides anything, and what disappears in the first is not called hidden as well.
    pub(super) fn or(mut self, mut other: Self) -> Self {
        other.hidden.retain(|path| !self.disappears.iter().any(|gone| gone.contains(path)));
        if self.hidden.is_empty() && !other.hidden.is_empty() {
            self.dropped = other.dropped;
        }
        unite(&mut self.hidden, other.hidden);
        unite(&mut self.appears, other.appears);
        unite(&mut self.appears_on_write, other.appears_on_write);
        unite(&mut self.changes, other.changes);
        unite(&mut self.disappears, other.disappears);
        self.protected.extend(other.protected);
        self.protected.retain(|path| self.changes.contains(path) || self.disappears.contains(path));
        self.protected.sort();
        self.protected.dedup();
        for problem in other.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self
    }

    /// The places to which something happens in another case, and not in this.
    pub(super) fn lacks(&self, other: &Self) -> Vec<Path> {
        let mut lacking = Vec::new();
        for ((_, of_this), (_, of_other)) in by_effect(self).into_iter().zip(by_effect(other)) {
            let is_lacking = |place: &&Path| !of_this.iter().any(|known| known.contains(place));
            unite(&mut lacking, of_other.iter().filter(is_lacking).cloned().collect());
        }
        for problem in other.problems.iter().filter(|problem| !self.problems.contains(problem)) {
            let place = match problem {
                Problem::Invalid { broken, .. } => broken.place.clone(),
                _ => Path::root(),
            };
            unite(&mut lacking, vec![place]);
        }
        lacking
    }

    /// Whether the object is the same to its readers and writers, before and after.
    pub fn is_none(&self) -> bool {
        self.appears.is_empty()
            && self.appears_on_write.is_empty()
            && self.changes.is_empty()
            && self.disappears.is_empty()
            && self.follows.is_empty()
            && self.hidden.is_empty()
            && self.problems.is_empty()
    }
}

impl EffectKind {
    /// Whether the same happens to the value at this place, apart from what Etch does with the object.
    fn is_like(self, other: Self) -> bool {
        let is_hidden = |kind| matches!(kind, Self::Hidden | Self::Dropped);
        self == other || is_hidden(self) && is_hidden(other)
    }

    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Appears => "appears",
            Self::AppearsOnWrite => "appears on write",
            Self::Changes => "changes",
            Self::Follows => "follows",
            Self::Disappears => "disappears",
            Self::Hidden => "hidden",
            Self::Dropped => "dropped",
            Self::Problem => "problem",
        }
    }

    /// The words for what may happen.
    pub fn as_possibility(self) -> &'static str {
        match self {
            Self::Appears => "may appear",
            Self::AppearsOnWrite => "may appear on write",
            Self::Changes => "may change",
            Self::Follows => "may follow",
            Self::Disappears => "may disappear",
            Self::Hidden => "may be hidden",
            Self::Dropped => "may be dropped",
            Self::Problem => "may be a problem",
        }
    }
}

/// The places of an effect by what happens there, the mildest first.
pub fn by_effect(effect: &Effect) -> [(EffectKind, &[Path]); 6] {
    let hidden = if effect.dropped { EffectKind::Dropped } else { EffectKind::Hidden };
    [
        (EffectKind::Appears, &effect.appears),
        (EffectKind::AppearsOnWrite, &effect.appears_on_write),
        (EffectKind::Changes, &effect.changes),
        (EffectKind::Follows, &effect.follows),
        (EffectKind::Disappears, &effect.disappears),
        (hidden, &effect.hidden),
    ]
}

/// What happens in some of several cases, and not in all.
pub(super) fn open(cases: &[Effect]) -> Open {
    let of_cases: Vec<HashSet<(EffectKind, &Path)>> = cases
        .iter()
        .map(|case| {
            by_effect(case)
                .into_iter()
                .flat_map(|(kind, places)| places.iter().map(move |place| (kind, place)))
        })
        .map(Iterator::collect)
        .collect();
    // A place is sure where it, or what it is in, is one of every case.
    let is_sure = |kind: EffectKind, place: &Path| {
        of_cases.iter().all(|of_case| {
            let mut place = place.clone();
            of_case.contains(&(kind, &place))
                || std::iter::from_fn(|| place.pop().map(|_| of_case.contains(&(kind, &place)))).any(|is| is)
        })
    };
    let mut found = Open::default();
    for case in cases {
        for (kind, places) in by_effect(case) {
            let open = places.iter().filter(|place| !is_sure(kind, place));
            found.places.extend(open.map(|place| (kind, place.clone())));
        }
        for problem in &case.problems {
            let is_sure = cases.iter().all(|case| case.problems.contains(problem));
            if !is_sure && !found.problems.contains(problem) {
                found.problems.push(problem.clone());
            }
        }
    }
    found.places.sort();
    found.places.dedup();
    found
}

/// The topmost places of both, in order.
pub(super) fn unite(places: &mut Vec<Path>, others: Vec<Path>) {
    places.extend(others);
    places.sort();
    // A place comes before what is in it, with nothing else between them.
    places.dedup_by(|next, place| place.contains(next));
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid { broken, before: false } => write!(f, "{broken}; {}", rejected(broken)),
            Self::Invalid { broken, before: true } => write!(f, "{broken}, under the old schema too"),
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::OwnedAt { version } => write!(
                f,
                "managedFields name {version}, which is removed: every apply fails until each entry names \
                 another version"
            ),
            Self::MaybeStoredAt { removed, storage } => write!(
                f,
                "not known to be stored at {storage}: at {} it cannot be read any more",
                removed.join(" or ")
            ),
            Self::MaybeLosesFieldsAt { version, storage } => write!(
                f,
                "not known to be stored at {storage}: at {version} it loses fields that {version} no longer \
                 has"
            ),
            Self::MaybeUnconverted { versions, storage } => write!(
                f,
                "not known to be stored at {storage}: from {} no webhook converts it any more",
                versions.join(" or ")
            ),
            Self::NotConverted { version, storage } => {
                write!(
                    f,
                    "not checked: the object is at {version}, and a webhook converts it; provide it at \
                     {storage}"
                )
            }
            Self::PartlyShown { version, storage } => write!(
                f,
                "not fully checked: at {version} the object does not show fields of {storage} that the \
                 upgrade removes; provide it at {storage}"
            ),
            Self::Opaque { why } => write!(f, "not checked: its value in etcd is {why}"),
            Self::TooDeep => write!(f, "not checked: it is nested more than {DEPTH} levels deep"),
            Self::NotJudged { version } => {
                write!(f, "not known to be valid: it is stored at {version}, and a webhook converts it")
            }
        }
    }
}

/// What the API server rejects of an object that breaks this.
fn rejected(broken: &Broken) -> Cow<'static, str> {
    match (broken.refused, &broken.judged) {
        (Refused::Changes, None) => {
            "writes that change it are rejected, and so is creating the object again".into()
        }
        (Refused::Changes, Some(judged)) => {
            format!("writes that change {judged} are rejected, and so is creating the object again").into()
        }
        (Refused::Never, _) => "creating the object again is rejected, and writes are not".into(),
        (Refused::Always, _) => "every write of the object is rejected, and so is creating it again".into(),
        (Refused::EveryUpdate, _) => "every write of the object is rejected".into(),
    }
}
