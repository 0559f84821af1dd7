//! What sort of thing an upgrade does: whether it adds, changes or takes away. The callers decide which of
//! them is acceptable.

use std::collections::BTreeSet;

use super::{Effect, Problem, SchemaChanges};

/// A sort of effect, of a schema's changes or on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A default or a value comes.
    Addition,
    /// A default or a value becomes another.
    Change,
    /// A default, a field or a value goes.
    Loss,
    /// An object becomes invalid, or the upgrade's effect on it is unknown.
    Problem,
    /// An object is invalid, and was so before.
    Known,
}

impl Kind {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Addition => "addition",
            Self::Change => "change",
            Self::Loss => "loss",
            Self::Problem => "problem",
            Self::Known => "known",
        }
    }
}

impl SchemaChanges {
    /// The sorts of changes that there are.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        let nulls = |replaced| self.nulls_removed.iter().any(|(_, default)| default.is_some() == replaced);
        let mut kinds = present([
            (Kind::Addition, !self.defaults_added.is_empty()),
            (Kind::Change, !self.defaults_changed.is_empty() || nulls(true)),
            (Kind::Loss, !self.defaults_removed.is_empty() || nulls(false)),
        ]);
        kinds.extend(self.kinds_beside_defaults());
        kinds
    }

    /// The sorts of those that are not about defaults: if the effect of other defaults on every object is
    /// known, that counts instead.
    pub fn kinds_beside_defaults(&self) -> BTreeSet<Kind> {
        let lost = [&self.fields_removed, &self.unknown_removed];
        present([(Kind::Loss, !lost.iter().all(|places| places.is_empty()))])
    }
}

impl Effect {
    /// The sorts of things that happen to the object.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        present([
            (Kind::Addition, !self.appears.is_empty() || !self.appears_on_write.is_empty()),
            (Kind::Change, !self.changes.is_empty() || !self.follows.is_empty()),
            (Kind::Loss, !self.disappears.is_empty() || !self.hidden.is_empty()),
            (Kind::Problem, self.problems.iter().any(|problem| !problem.is_known())),
            (Kind::Known, self.problems.iter().any(Problem::is_known)),
        ])
    }
}

fn present<const N: usize>(kinds: [(Kind, bool); N]) -> BTreeSet<Kind> {
    kinds.into_iter().filter_map(|(kind, is_present)| is_present.then_some(kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Broken;
    use kube_structural_schema::finding::Refused;
    use kube_structural_schema::json::Json;
    use kube_structural_schema::path::{Path, Step};

    fn place() -> Vec<Path> {
        vec![Path::from(vec![Step::Field("a".to_owned())])]
    }

    fn invalid(before: bool) -> Effect {
        let broken = Broken {
            place: Path::root(),
            requirement: "it is required".to_owned(),
            refused: Refused::Changes,
            judged: None,
        };
        let problem = Problem::Invalid { broken, before };
        Effect { problems: vec![problem], ..Effect::default() }
    }

    #[test]
    fn each_effect_has_its_sort() {
        let opaque = Problem::Opaque { why: "encrypted".to_owned() };
        for (effect, expected) in [
            (Effect::default(), &[][..]),
            (Effect { appears: place(), ..Effect::default() }, &[Kind::Addition]),
            (Effect { appears_on_write: place(), ..Effect::default() }, &[Kind::Addition]),
            (Effect { changes: place(), ..Effect::default() }, &[Kind::Change]),
            (Effect { follows: place(), ..Effect::default() }, &[Kind::Change]),
            (Effect { disappears: place(), ..Effect::default() }, &[Kind::Loss]),
            (Effect { hidden: place(), ..Effect::default() }, &[Kind::Loss]),
            (Effect { problems: vec![opaque], ..Effect::default() }, &[Kind::Problem]),
            (invalid(false), &[Kind::Problem]),
            (invalid(true), &[Kind::Known]),
            (
                Effect { appears: place(), hidden: place(), ..invalid(false) },
                &[Kind::Addition, Kind::Loss, Kind::Problem],
            ),
        ] {
            assert!(effect.kinds().iter().eq(expected), "{effect:?}: {:?}", effect.kinds());
        }
    }

    #[test]
    fn each_change_of_a_schema_has_its_sort() {
        let removed = SchemaChanges { fields_removed: place(), ..SchemaChanges::default() };
        assert!(removed.kinds().iter().eq(&[Kind::Loss]));
        assert!(SchemaChanges::default().kinds().is_empty());
        for (default, kind) in [(None, Kind::Loss), (Some(Json::from(serde_json::json!(1))), Kind::Change)] {
            let nulls_removed = vec![(Path::root(), default)];
            let changes = SchemaChanges { nulls_removed, ..SchemaChanges::default() };
            assert!(changes.kinds().iter().eq(&[kind]) && changes.kinds_beside_defaults().is_empty());
        }
    }
}
