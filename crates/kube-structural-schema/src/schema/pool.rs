//! Parts that schemas have in common, held once.
//!
//! CRDs repeat each other: a pod's affinity, its volumes and its environment stand in many of them, and in
//! every version. Of 43,609 nodes in 160 CRDs of 49 projects, 3,286 were different.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest as _, Sha256};

use super::{Additional, Constraints, Properties, Rule, Schema};
use crate::json::Json;

/// One allocation of [`Properties`].
type List = [(Box<str>, Arc<Schema>)];

/// The properties of schemas that are held somewhere, each once: a list of a hundred settings has its own
/// names, but most of them are plain texts and numbers.
#[derive(Debug, Default)]
pub struct Pool {
    lists: Mutex<Known<List>>,
    properties: Mutex<Known<Schema>>,
}

#[derive(Debug)]
struct Known<T: ?Sized> {
    /// By all of their content.
    held: HashMap<[u8; 32], Weak<T>>,
    /// How many entries there may be until those that are no longer in use are removed.
    room: usize,
}

impl Pool {
    /// Replaces the parts that a schema has in common with others of this pool by theirs, and lets others
    /// share the rest.
    ///
    /// Only parts with no other user are looked at: those of a schema that was just parsed.
    pub fn share(&self, schema: &mut Schema) {
        each_part(schema, &mut |part| self.share(part));
        let Some(list) = Arc::get_mut(&mut schema.properties.0).filter(|list| !list.is_empty()) else {
            return;
        };
        for (_, property) in &mut *list {
            Arc::get_mut(property).into_iter().for_each(|property| self.share(property));
            let key = Writer::key(|writer| writer.schema(property));
            *property = lock(&self.properties).same(key, property.clone());
        }
        let key = Writer::key(|writer| writer.list(list));
        let Properties(list) = std::mem::take(&mut schema.properties);
        schema.properties = Properties(lock(&self.lists).same(key, list));
    }
}

impl<T: ?Sized> Default for Known<T> {
    fn default() -> Self {
        Self { held: HashMap::new(), room: 0 }
    }
}

impl<T: ?Sized> Known<T> {
    /// The equal value that is in use, if there is one.
    fn same(&mut self, key: [u8; 32], new: Arc<T>) -> Arc<T> {
        if let Some(known) = self.held.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if self.held.len() >= self.room {
            self.held.retain(|_, held| held.strong_count() > 0);
            self.room = (self.held.len() * 2).max(64);
        }
        self.held.insert(key, Arc::downgrade(&new));
        new
    }
}

fn lock<T: ?Sized>(known: &Mutex<Known<T>>) -> MutexGuard<'_, Known<T>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Visits what stands in a schema beside its properties.
fn each_part(schema: &mut Schema, visit: &mut impl FnMut(&mut Schema)) {
    schema.items.as_deref_mut().into_iter().for_each(&mut *visit);
    if let Some(Additional::Schema(values)) = &mut schema.additional {
        visit(values);
    }
    if let Some(constraints) = &mut schema.constraints {
        let Constraints { all_of, any_of, one_of, not, .. } = &mut **constraints;
        [all_of, any_of, one_of].into_iter().flatten().for_each(&mut *visit);
        not.as_deref_mut().into_iter().for_each(visit);
    }
}

/// Writes all content of a node, each part with its length or its number before it.
struct Writer(Sha256);

impl Writer {
    /// The key of a value, by all that is written of it.
    fn key(write: impl FnOnce(&mut Self)) -> [u8; 32] {
        let mut writer = Self(Sha256::new());
        write(&mut writer);
        writer.0.finalize().into()
    }

    /// Schemas are identified by their addresses, because they are shared already: as long as a list is in
    /// use, they stay where they are.
    fn list(&mut self, list: &List) {
        for (name, property) in list {
            self.text(name);
            self.number(Arc::as_ptr(property).addr() as u64);
        }
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    fn texts<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) {
        self.number(texts.len() as u64);
        texts.for_each(|text| self.text(text));
    }

    fn flags(&mut self, flags: &[bool]) {
        self.0.update(flags.iter().map(|flag| u8::from(*flag)).collect::<Vec<_>>());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flags(&[value.is_some()]);
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn json(&mut self, value: &Json) {
        let bytes = value.to_vec();
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn schemas(&mut self, schemas: &[Schema]) {
        self.number(schemas.len() as u64);
        schemas.iter().for_each(|schema| self.schema(schema));
    }

    fn schema(&mut self, schema: &Schema) {
        let Schema {
            kind,
            nullable,
            preserve_unknown_fields,
            embedded_resource,
            int_or_string,
            titled,
            described,
            adorned,
            default,
            properties,
            items,
            additional,
            list_type,
            list_map_keys,
            map_type,
            constraints,
            rules,
        } = schema;
        self.text(kind.as_str());
        self.flags(&[
            *nullable,
            *preserve_unknown_fields,
            *embedded_resource,
            *int_or_string,
            *titled,
            *described,
            *adorned,
        ]);
        self.option(default.as_ref(), Self::json);
        self.number(properties.iter().len() as u64);
        self.number(if properties.is_empty() { 0 } else { properties.0.as_ptr().addr() as u64 });
        self.option(items.as_deref(), Self::schema);
        self.option(additional.as_ref(), |writer, additional| match additional {
            Additional::Schema(schema) => writer.option(Some(&**schema), Self::schema),
            Additional::Bool(allowed) => writer.flags(&[false, *allowed]),
        });
        self.option(list_type.as_deref(), Self::text);
        self.texts(list_map_keys.iter().map(String::as_str));
        self.option(map_type.as_deref(), Self::text);
        self.option(constraints.as_deref(), Self::constraints);
        self.number(rules.len() as u64);
        rules.iter().for_each(|rule| self.rule(rule));
    }

    fn constraints(&mut self, constraints: &Constraints) {
        let Constraints {
            format,
            pattern,
            maximum,
            exclusive_maximum,
            minimum,
            exclusive_minimum,
            multiple_of,
            max_length,
            min_length,
            max_items,
            min_items,
            unique_items,
            max_properties,
            min_properties,
            allowed,
            required,
            all_of,
            any_of,
            one_of,
            not,
        } = constraints;
        self.text(format);
        self.text(pattern);
        for bound in [maximum, minimum, multiple_of] {
            self.option(*bound, |writer, bound| writer.number(bound.to_bits()));
        }
        for bound in [max_length, min_length, max_items, min_items, max_properties, min_properties] {
            self.option(*bound, |writer, bound| writer.number(bound.cast_unsigned()));
        }
        self.flags(&[*exclusive_maximum, *exclusive_minimum, *unique_items]);
        self.number(allowed.len() as u64);
        allowed.iter().for_each(|value| self.json(value));
        self.texts(required.iter().map(String::as_str));
        self.schemas(all_of);
        self.schemas(any_of);
        self.schemas(one_of);
        self.option(not.as_deref(), Self::schema);
    }

    fn rule(&mut self, rule: &Rule) {
        let Rule { rule, message, message_expression, reason, field_path, optional_old_self } = rule;
        self.texts([rule, message, message_expression, field_path].map(String::as_str).into_iter());
        self.option(reason.as_deref(), Self::text);
        self.option(*optional_old_self, |writer, optional| writer.flags(&[optional]));
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use serde_json::{Value, json};

    use super::*;

    fn shared(pool: &Pool, document: &Value) -> Schema {
        let mut schema = Schema::parse(document).expect("a schema");
        pool.share(&mut schema);
        schema
    }

    fn address(schema: &Schema) -> usize {
        schema.properties.0.as_ptr().addr()
    }

    #[test]
    fn equal_parts_are_held_once_wherever_they_stand() {
        let part = json!({"properties": {"a": {"properties": {"b": {"type": "string", "maxLength": 3}}}}});
        let pool = Pool::default();
        let one = shared(&pool, &part);
        let all = json!({
            "properties": {"p": part}, "items": part, "additionalProperties": part,
            "allOf": [part], "anyOf": [part], "oneOf": [part], "not": part,
        });
        let other = shared(&pool, &all);
        let constraints = other.constraints.as_deref().expect("clauses");
        let parts =
            [other.child("p"), other.items.as_deref(), other.additional_schema(), constraints.not.as_deref()];
        let clauses = [&constraints.all_of, &constraints.any_of, &constraints.one_of].into_iter().flatten();
        let found: Vec<usize> = parts.into_iter().flatten().chain(clauses).map(address).collect();
        assert_eq!(found, [address(&one); 7]);
        // Those of `a`, of `b` and of `p`.
        assert_eq!((lock(&pool.lists).held.len(), lock(&pool.properties).held.len()), (3, 3));
    }

    #[test]
    fn equal_properties_are_held_once_whatever_stands_beside_them() {
        let pool = Pool::default();
        let text = json!({"type": "string", "description": "a text"});
        let one = shared(&pool, &json!({"properties": {"a": text, "b": text, "c": {"items": text}}}));
        let other = shared(&pool, &json!({"properties": {"d": text}}));
        let found = [one.child("a"), one.child("b"), other.child("d")].map(|found| found.map(ptr::from_ref));
        assert_eq!(found, [found[0]; 3]);
    }

    #[test]
    fn whatever_a_schema_says_tells_it_apart() {
        let wording = [
            json!({}),
            json!({"type": "string"}),
            json!({"nullable": true}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"x-kubernetes-embedded-resource": true}),
            json!({"x-kubernetes-int-or-string": true}),
            json!({"title": "a"}),
            json!({"description": "a"}),
            json!({"example": "a"}),
            json!({"default": 1}),
            json!({"default": 1.0}),
            json!({"default": "1"}),
            json!({"properties": {"a": {}}}),
            json!({"properties": {"b": {}}}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"items": {}}),
            json!({"items": {"type": "string"}}),
            json!({"additionalProperties": {}}),
            json!({"additionalProperties": true}),
            json!({"additionalProperties": false}),
            json!({"x-kubernetes-list-type": "set"}),
            json!({"x-kubernetes-list-type": "map"}),
            json!({"x-kubernetes-map-type": "atomic"}),
            json!({"x-kubernetes-list-map-keys": ["a"]}),
            json!({"x-kubernetes-list-map-keys": ["a", "b"]}),
            json!({"x-kubernetes-validations": [{"rule": "a"}]}),
            json!({"x-kubernetes-validations": [{"message": "a"}]}),
            json!({"x-kubernetes-validations": [{"messageExpression": "a"}]}),
            json!({"x-kubernetes-validations": [{"fieldPath": "a"}]}),
            json!({"x-kubernetes-validations": [{"reason": "a"}]}),
            json!({"x-kubernetes-validations": [{"optionalOldSelf": true}]}),
            json!({"x-kubernetes-validations": [{"optionalOldSelf": false}]}),
            json!({"format": "a"}),
            json!({"pattern": "a"}),
            json!({"maximum": 1}),
            json!({"minimum": 1}),
            json!({"multipleOf": 1}),
            json!({"exclusiveMaximum": true}),
            json!({"exclusiveMinimum": true}),
            json!({"uniqueItems": true}),
            json!({"maxLength": 1}),
            json!({"minLength": 1}),
            json!({"maxItems": 1}),
            json!({"minItems": 1}),
            json!({"maxProperties": 1}),
            json!({"minProperties": 1}),
            json!({"enum": [1]}),
            json!({"enum": [1, 2]}),
            json!({"required": ["a"]}),
            json!({"allOf": [{}]}),
            json!({"anyOf": [{}]}),
            json!({"oneOf": [{}]}),
            json!({"not": {}}),
        ];
        let pool = Pool::default();
        let held: Vec<Schema> =
            wording.iter().map(|one| shared(&pool, &json!({"properties": {"x": one}}))).collect();
        let mut addresses: Vec<usize> = held.iter().map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), wording.len());
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let pool = Pool::default();
        for number in 0..1000 {
            shared(&pool, &json!({"properties": {number.to_string(): {}}}));
        }
        assert!(lock(&pool.lists).held.len() <= 65);
        assert!(lock(&pool.properties).held.len() <= 65);
    }

    #[test]
    fn a_schema_of_a_thousand_levels_is_shared() {
        let mut text = r#"{"properties":{"a":{"items":"#.repeat(333);
        text.push_str("{}");
        text.push_str(&"}}}".repeat(333));
        let document = Json::parse(text.as_bytes()).expect("JSON");
        let pool = Pool::default();
        let (one, other) = (shared(&pool, &document), shared(&pool, &document));
        assert_eq!(address(&one), address(&other));
    }
}
