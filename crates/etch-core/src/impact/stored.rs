//! What etcd holds of an object: where that is proved, and where it is inferred from what the owners name.
//! The second is not proof: a claim outlives its field, and a value may be stored without an owner.

use serde_json::Value;

use crate::audit::{Missing, State, by_view};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{Owner, is_covered, is_named, owners};
use crate::plan::{History, Record};
use crate::without::remove;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step, Trail};
use kube_structural_schema::schema::Schema;

/// What etcd holds of an object that is read at the storage version, where that is proved: all that it shows,
/// or all but defaults that are known to be absent.
pub fn proved(object: &Object, crd: &Crd, record: &Record) -> Option<Json> {
    if record.covers(object, crd).is_some() {
        return Some(object.json().clone());
    }
    let missing = by_view(object, crd, record, false);
    let is_certain = record.history.has_stored_only_at(&crd.storage().name)
        && missing.iter().all(|missing| missing.state == State::Phantom);
    is_certain.then(|| without(object, &missing))
}

/// The object without the defaults of which nothing proves that etcd holds them, whoever names them.
pub(super) fn without_unproved(object: &Object, crd: &Crd, record: &Record) -> Json {
    without(object, &by_view(object, crd, record, false))
}

/// The object without what is missing. The root stands for what is not known to be at any place.
fn without(object: &Object, missing: &[Missing]) -> Json {
    let mut stored = object.json().clone();
    let places = missing.iter().map(|missing| missing.path.steps()).filter(|steps| !steps.is_empty());
    places.for_each(|steps| remove(&mut stored, steps));
    stored
}

/// The object with a null for each default that may stand in place of one: an owner names a null as it names
/// a value. `None` if there are no such defaults.
pub(super) fn with_nulls(object: &Object, crd: &Crd, history: &History) -> Option<Json> {
    let mut nulls = Vec::new();
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, _: &Value| {
        let path = at.to_path();
        nulls.extend(history.may_be_null(object, &path).then_some(path));
    });
    let mut stored = object.json().clone();
    for path in &nulls {
        if let Some(shown) = stored.pointer_mut(&path.pointer()) {
            *shown = Value::Null;
        }
    }
    (!nulls.is_empty()).then_some(stored)
}

/// How many levels of nested defaults are distinguished.
const LEVELS: usize = 4;

/// The object without the values that these defaults give, of the version that its bytes are in, and that no
/// owner names.
///
/// A default may stand in the value of another one: `{}` in which `x: 5` appears. The object may have been
/// written since the outer default is there and before the inner one was. So there may be several things that
/// etcd holds: the first lacks the outer values, each further one has them and lacks what is in them, one
/// level deeper.
pub fn presumed(object: &Object, crd: &Crd, defaults: &Compiled) -> Vec<Json> {
    let presumption = Presumption {
        object: object.json(),
        schema: &crd.storage().schema,
        owners: owners(object).filter(|owner| crd.names_fields_alike(owner.version())).collect(),
    };
    let mut phantoms = Vec::new();
    defaults.filled_within(object.json(), LEVELS, &mut |at: &Trail<'_>, value: &Value, level| {
        let mut paths = Vec::new();
        presumption.collect(value, at.to_path(), &mut paths);
        phantoms.push((level, paths));
    });
    let deepest = phantoms.iter().map(|(level, _)| *level).max().unwrap_or_default();
    let stored = |depth: usize| {
        let mut stored = object.json().clone();
        // What has nothing in it at this depth lacks as a whole.
        let next = phantoms.iter().skip(1).map(|(level, _)| *level).chain([0]);
        for ((level, paths), next) in phantoms.iter().zip(next) {
            if *level == depth || *level < depth && next <= *level {
                paths.iter().for_each(|path| remove(&mut stored, path.steps()));
            }
        }
        stored
    };
    (0..=deepest).map(stored).collect()
}

struct Presumption<'a> {
    object: &'a Value,
    schema: &'a Schema,
    owners: Vec<Owner<'a>>,
}

impl Presumption<'_> {
    /// The topmost places here and below that no owner names.
    fn collect(&self, value: &Value, path: Path, phantoms: &mut Vec<Path>) {
        let owners = self.owners.iter().copied();
        if is_covered(owners.clone(), self.object, self.schema, path.steps()) {
            return;
        }
        if !is_named(owners, self.object, self.schema, path.steps()) {
            return phantoms.push(path);
        }
        // Named, and not as a whole: a client wrote a part of it.
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.collect(value, path.join(Step::Field(name.clone())), phantoms);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if item.is_object() || item.is_array() {
                        self.collect(item, path.join(Step::Index(index)), phantoms);
                    }
                }
            }
            _ => phantoms.push(path),
        }
    }
}
