//! Two schemas compared: defaults that appear, change and go, and fields that go. Whether an object is
//! touched is decided elsewhere.

use std::collections::BTreeMap;

use crate::crd::Crd;
use kube_structural_schema::compile::{Compiled, DefaultSite};
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::prune::{Field, Pruner};
use kube_structural_schema::schema::{Additional, Schema};

/// How many values the defaults of a schema may give together, to be compared as they are filled in: those of
/// lists multiply. Others are compared as they stand.
const ROOM: usize = 100_000;

/// What is different between two schemas; all lists are sorted by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaChanges {
    /// Defaults that only the new schema has, as they stand there.
    pub defaults_added: Vec<(Path, Json)>,
    /// Defaults that give another value, with the defaults below them; `1.0` and `1` are the same.
    pub defaults_changed: Vec<Changed>,
    /// Defaults that only the old schema has.
    pub defaults_removed: Vec<(Path, Json)>,
    /// The topmost places whose values only the old schema keeps.
    pub fields_removed: Vec<Path>,
    /// The places that no longer keep fields which the schema does not declare; the whole object where the
    /// CRD no longer has `preserveUnknownFields: true`.
    pub unknown_removed: Vec<Path>,
    /// The fields and values of maps that may no longer be null, with the default that replaces a null;
    /// without one the API server drops it.
    pub nulls_removed: Vec<(Path, Option<Json>)>,
}

/// A default that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Where it stands.
    pub path: Path,
    /// What it was.
    pub old: Json,
    /// What it is.
    pub new: Json,
}

impl SchemaChanges {
    /// Whether nothing that matters to stored objects is different.
    pub fn is_none(&self) -> bool {
        self.defaults_added.is_empty()
            && self.defaults_changed.is_empty()
            && self.defaults_removed.is_empty()
            && self.fields_removed.is_empty()
            && self.unknown_removed.is_empty()
            && self.nulls_removed.is_empty()
    }
}

/// Compares the storage versions of two states of a CRD; without an old CRD, all is new.
pub fn compare_crds(old: Option<&Crd>, new: &Crd) -> SchemaChanges {
    let nothing = Schema::default();
    let new_schema = &new.storage().schema;
    let mut changes = compare(old.map_or(&nothing, |old| &old.storage().schema), new_schema);
    if new.preserves_unknown_fields() {
        // What the schema no longer declares is shown nevertheless.
        changes.fields_removed.clear();
        changes.unknown_removed.clear();
    } else if old.is_some_and(Crd::preserves_unknown_fields) && !keeps_unknown(new_schema) {
        changes.unknown_removed = vec![Path::root()];
    }
    changes
}

/// Compares the defaults of each other version that both states have, at which the API server creates objects
/// or reads stored ones (fact R2): of those that are served, and of those in `status.storedVersions`.
pub fn compare_other_defaults(old: &Crd, new: &Crd) -> Vec<(String, SchemaChanges)> {
    let mut found = Vec::new();
    for before in old.versions() {
        let name = &before.name;
        let Some(after) = new.version(name) else { continue };
        let is_storage = [old, new].map(|crd| *name == crd.storage().name);
        let is_stored = is_storage.contains(&true) || old.versions_elsewhere().any(|version| version == name);
        if is_storage == [true, true] || !(before.served || after.served || is_stored) {
            continue;
        }
        let changes = SchemaChanges {
            fields_removed: Vec::new(),
            unknown_removed: Vec::new(),
            ..compare(&before.schema, &after.schema)
        };
        if !changes.is_none() {
            found.push((name.clone(), changes));
        }
    }
    found
}

/// Compares the defaults and the declared fields of two schemas. A default of the whole object has no effect
/// and does not count.
pub fn compare(old: &Schema, new: &Schema) -> SchemaChanges {
    let mut changes = SchemaChanges::default();
    defaults(Some(old), Some(new), &Trail::ROOT, &mut changes);
    if !changes.defaults_changed.is_empty() {
        let (before, after) = (given(old), given(new));
        let is_same = |path: &Path| {
            before.get(path).zip(after.get(path)).is_some_and(|(before, after)| same(before, after))
        };
        changes.defaults_changed.retain(|changed| !is_same(&changed.path));
    }
    removed(old, Pruner::root(new), &Trail::ROOT, &mut changes);
    changes.defaults_added.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.defaults_changed.sort_by(|a, b| a.path.cmp(&b.path));
    changes.defaults_removed.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.fields_removed.sort();
    changes.unknown_removed.sort();
    changes.nulls_removed.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes
}

/// What each default gives, with the defaults below it, as far as there is room for them.
fn given(schema: &Schema) -> BTreeMap<Path, Json> {
    let mut room = ROOM;
    let compiled = Compiled::new(schema);
    let value = |site: DefaultSite<'_>| Some((site.path.clone(), site.value_within(&mut room)?));
    compiled.defaults().into_iter().filter_map(value).collect()
}

/// The defaults below a place. What only one schema declares by its name is a value of a map for the other,
/// if that has any.
fn defaults(old: Option<&Schema>, new: Option<&Schema>, at: &Trail<'_>, changes: &mut SchemaChanges) {
    for (name, before) in old.iter().flat_map(|old| old.properties.iter()) {
        let at = at.join(TrailStep::Field(name));
        let declared = new.and_then(|new| new.properties.get(name));
        default(Some(before), declared, &at, changes);
        null(Some(before), declared, &at, changes);
        defaults(Some(before), declared.or(values(new)), &at, changes);
    }
    for (name, after) in new.iter().flat_map(|new| new.properties.iter()) {
        if !old.is_some_and(|old| old.properties.contains(name)) {
            let at = at.join(TrailStep::Field(name));
            default(None, Some(after), &at, changes);
            defaults(values(old), Some(after), &at, changes);
        }
    }
    for (old, new, step) in
        [(items(old), items(new), TrailStep::Items), (values(old), values(new), TrailStep::Values)]
    {
        if old.is_some() || new.is_some() {
            let at = at.join(step);
            default(old, new, &at, changes);
            if matches!(step, TrailStep::Values) {
                null(old, new, &at, changes);
            }
            defaults(old, new, &at, changes);
        }
    }
}

/// The default at a place.
fn default(old: Option<&Schema>, new: Option<&Schema>, at: &Trail<'_>, changes: &mut SchemaChanges) {
    let of = |schema: Option<&Schema>| schema.and_then(|schema| schema.default.clone());
    match (of(old), of(new)) {
        (None, Some(value)) => changes.defaults_added.push((at.to_path(), value)),
        (Some(value), None) => changes.defaults_removed.push((at.to_path(), value)),
        (Some(old), Some(new)) if !same(&old, &new) => {
            changes.defaults_changed.push(Changed { path: at.to_path(), old, new });
        }
        _ => {}
    }
}

/// A null that was a value at a place, which no `enum` allows.
fn null(old: Option<&Schema>, new: Option<&Schema>, at: &Trail<'_>, changes: &mut SchemaChanges) {
    let (Some(old), Some(new)) = (old, new) else { return };
    let was_value = old.nullable && old.constraints.as_ref().is_none_or(|all| all.allowed.is_empty());
    if was_value && !new.nullable {
        changes.nulls_removed.push((at.to_path(), new.default.clone()));
    }
}

/// What the old schema keeps below a place, and the new one prunes.
fn removed(old: &Schema, new: Pruner<'_>, at: &Trail<'_>, changes: &mut SchemaChanges) {
    let values = at.join(TrailStep::Values);
    match (new.undeclared(), old.additional_schema()) {
        (Field::Removed, _) => {
            // Where no key is allowed, none is lost.
            if !matches!(old.additional, None | Some(Additional::Bool(false))) {
                changes.fields_removed.push(values.to_path());
            }
            if old.preserve_unknown_fields {
                changes.unknown_removed.push(at.to_path());
            }
        }
        (Field::Pruned(inside), Some(before)) => removed(before, inside, &values, changes),
        (Field::Pruned(_) | Field::Kept, _) => {}
    }
    for (name, before) in old.properties.iter() {
        let at = at.join(TrailStep::Field(name));
        match new.field(name) {
            Field::Removed => changes.fields_removed.push(at.to_path()),
            Field::Pruned(inside) => removed(before, inside, &at, changes),
            Field::Kept => {}
        }
    }
    if let (Some(items), Some(item)) = (&old.items, new.item()) {
        removed(items, item, &at.join(TrailStep::Items), changes);
    }
}

/// Whether an object keeps the fields that its schema does not declare, or has a place for them.
fn keeps_unknown(schema: &Schema) -> bool {
    schema.preserve_unknown_fields || schema.additional.is_some()
}

fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

fn values(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(Schema::additional_schema)
}

#[cfg(test)]
mod tests {
    use kube_structural_schema::path::Step;
    use kube_structural_schema::prune;
    use serde_json::{Value, json};

    use super::*;

    fn gone(old: &Value, new: &Value) -> Vec<String> {
        let [old, new] = [old, new].map(|schema| Schema::parse(schema).expect("a schema"));
        compare(&old, &new).fields_removed.iter().map(Path::to_string).collect()
    }

    #[test]
    fn nulls_that_were_values_are_replaced_or_dropped() {
        let object = |a: Value| json!({ "type": "object", "properties": { "a": a } });
        let nullable = json!({ "type": "string", "nullable": true });
        for (old, new, expected) in [
            (nullable.clone(), json!({ "type": "string", "default": "x" }), Some("\"x\"")),
            (nullable.clone(), json!({ "type": "string" }), Some("none")),
            (nullable.clone(), nullable.clone(), None),
            (json!({ "type": "string", "nullable": true, "enum": ["x"] }), json!({ "type": "string" }), None),
        ] {
            let [old, new] = [old, new].map(|a| Schema::parse(&object(a)).expect("a schema"));
            let nulls = compare(&old, &new).nulls_removed;
            let found = nulls.first().map(|(path, default)| {
                assert_eq!(path.to_string(), ".a");
                default.as_ref().map_or("none".to_owned(), |default| Value::to_string(default))
            });
            assert_eq!(found.as_deref(), expected, "{new:?}");
        }
    }

    #[test]
    fn a_field_that_is_kept_without_its_schema_is_not_gone() {
        let object = |a: Value| json!({ "type": "object", "properties": { "a": a } });
        let declared = object(json!({ "type": "object", "properties": { "b": object(json!({})) } }));
        for (kept, expected) in [
            (json!({ "type": "object" }), &[".a.b"][..]),
            (json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }), &[]),
            (json!({ "type": "object", "additionalProperties": object(json!({})) }), &[]),
            (json!({ "type": "object", "additionalProperties": { "type": "object" } }), &[".a.b.a"]),
            (json!({ "type": "object", "additionalProperties": true }), &[".a.b.a"]),
        ] {
            assert_eq!(gone(&declared, &object(kept.clone())), expected, "{kept}");
        }
        let meta = json!({ "properties": { "apiVersion": {}, "kind": {}, "metadata": {}, "x": {} } });
        assert_eq!(gone(&meta, &json!({})), [".x"]);
        assert_eq!(
            gone(&object(meta.clone()), &object(json!({ "x-kubernetes-embedded-resource": true }))),
            [".a.x"]
        );
        let list = |keywords: Value| object(json!({ "type": "array", "items": keywords }));
        let (items, bare) = (list(meta), list(json!({ "x-kubernetes-preserve-unknown-fields": true })));
        assert_eq!(gone(&items, &bare), [""; 0]);
        let map = object(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
        assert_eq!(gone(&map, &object(json!({ "type": "object" }))), [".a{}"]);
    }

    #[test]
    fn a_default_that_moves_to_the_fields_is_the_same() {
        let object = |default: Value, x: Value| {
            let a = json!({ "type": "object", "default": default, "properties": { "x": { "default": x } } });
            Schema::parse(&json!({ "type": "object", "properties": { "a": a } })).expect("a schema")
        };
        let changed = |old: &Schema, new: &Schema| -> Vec<String> {
            compare(old, new).defaults_changed.iter().map(|changed| changed.path.to_string()).collect()
        };
        let (outer, inner) = (object(json!({ "x": 1 }), json!(1)), object(json!({}), json!(1)));
        assert_eq!(changed(&outer, &inner), [""; 0]);
        assert_eq!(changed(&outer, &object(json!({}), json!(2))), [".a", ".a.x"]);
        assert_eq!(changed(&inner, &object(json!({ "x": 2 }), json!(1))), [".a"]);
    }

    /// For random pairs of schemas: of an object that has a value in every place which the old schema
    /// declares, the new one prunes exactly what is called gone.
    #[test]
    fn what_is_gone_is_what_is_pruned() {
        let mut seed = 1_u64;
        let mut next = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut seen = 0;
        for _ in 0..4000 {
            let (old, new) = (random(3, &mut next), random(3, &mut next));
            let mut object = full(&old);
            let schema = Schema::parse(&new).expect("a schema");
            let mut hidden = Vec::new();
            prune(&mut object, &schema, true, &mut |at| {
                hidden.push(plain(&at.to_path()));
            });
            hidden.sort();
            hidden.dedup();
            let [before, after] = [&old, &new].map(|schema| Schema::parse(schema).expect("a schema"));
            let mut found: Vec<_> = compare(&before, &after).fields_removed.iter().map(plain).collect();
            found.sort();
            assert_eq!(found, hidden, "{old} to {new}");
            seen += found.len();
        }
        assert!(seen > 1000, "{seen}");
    }

    /// A place in words that are the same whether a name is a field or a key of a map: one schema may have it
    /// as this, and the other as that.
    fn plain(path: &Path) -> String {
        let word = |step: &Step| match step {
            Step::Values => "{}".to_owned(),
            Step::Field(name) | Step::Key(name) if name == "zz" => "{}".to_owned(),
            Step::Field(name) | Step::Key(name) => format!(".{name}"),
            Step::Items | Step::Index(_) => "[]".to_owned(),
        };
        path.steps().iter().map(word).collect()
    }

    fn random(depth: u64, next: &mut impl FnMut(u64) -> u64) -> Value {
        let mut schema = json!({});
        match next(if depth == 0 { 1 } else { 6 }) {
            0 => {}
            1 => schema["items"] = random(depth - 1, next),
            2 => schema["additionalProperties"] = random(depth - 1, next),
            _ => {
                let names = ["a", "b", "kind"].into_iter().filter(|_| next(3) > 0).collect::<Vec<_>>();
                for name in names {
                    schema["properties"][name] = random(depth - 1, next);
                }
            }
        }
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if next(6) == 0 {
                schema[keyword] = json!(true);
            }
        }
        schema
    }

    /// A value in every place that a schema declares.
    fn full(schema: &Value) -> Value {
        if let Some(items) = schema.get("items") {
            return json!([full(items)]);
        }
        if let Some(values) = schema.get("additionalProperties") {
            return json!({ "zz": full(values) });
        }
        match schema.get("properties").and_then(Value::as_object) {
            Some(fields) => fields.iter().map(|(name, field)| (name.clone(), full(field))).collect(),
            None => json!("text"),
        }
    }
}
