//! Clauses and `maxProperties` over objects of which a part is known: fields that are there by default or
//! because they are required. What depends on other fields, or on values that users choose, stays open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::site::Site;
use etch_core::words::first;
use kube_crd_validation::validate;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::{Constraints, Schema};

/// The most fields that a message names.
const MOST_NAMED: usize = 8;

/// The keywords that the defaults of an object break whatever else is set, and those by which they exclude
/// other fields.
pub(super) fn broken(site: &Site<'_>, filled: &Value, empty: &Value) -> Vec<String> {
    let (Some(constraints), Value::Object(filled), Value::Object(empty)) =
        (site.schema.constraints.as_deref(), filled, empty)
    else {
        return Vec::new();
    };
    let without = Object::new(site, constraints).with(empty.keys());
    let with = without.with(filled.keys());
    let mut by_default = with.clone();
    let own = filled.iter().filter(|(name, _)| !empty.contains_key(*name));
    by_default.fields.extend(own.map(|(name, value)| (name.as_str(), Some(value))));
    let breaks = |keyword: Keyword<'_>, without: &Object<'_>, with: &Object<'_>| {
        keyword.is_met(with) == Some(false) && keyword.is_met(without) != Some(false)
    };
    let judge = |keyword: Keyword<'_>| {
        if breaks(keyword, &without, &by_default) {
            return Some(format!("its defaults break {keyword}"));
        }
        let mut names = BTreeSet::new();
        keyword.names(site.schema, &mut names);
        names.retain(|name| {
            with.has(name).is_none() && breaks(keyword, &without.with([name]), &with.with([name]))
        });
        let names = Vec::from_iter(names);
        let listed = || first(&names, names.len() as u64, MOST_NAMED);
        (!names.is_empty()).then(|| format!("its defaults exclude {} by {keyword}", listed()))
    };
    keywords(constraints).filter_map(judge).collect()
}

/// What is known of an object.
#[derive(Clone)]
struct Object<'a> {
    schema: &'a Schema,
    /// Whether it may have fields that the schema does not name.
    is_open: bool,
    /// The fields that are there for certain, with their values where these are known.
    fields: BTreeMap<&'a str, Option<&'a Value>>,
}

impl<'a> Object<'a> {
    /// One that has what is required.
    fn new(site: &Site<'a>, constraints: &'a Constraints) -> Self {
        let schema = site.schema;
        let is_whole = site.up.is_none() || schema.embedded_resource;
        let of_whole = ["apiVersion", "kind"].into_iter().filter(|_| is_whole);
        let required = constraints.required.iter().map(String::as_str);
        Self {
            schema,
            is_open: is_whole || schema.preserve_unknown_fields || schema.additional.is_some(),
            fields: required.chain(of_whole).map(|name| (name, None)).collect(),
        }
    }

    /// The object with more fields, whatever their values are.
    fn with<N: AsRef<str> + ?Sized + 'a>(&self, names: impl IntoIterator<Item = &'a N>) -> Self {
        let mut fields = self.fields.clone();
        fields.extend(names.into_iter().map(|name| (name.as_ref(), None)));
        Self { fields, ..*self }
    }

    /// Whether a field is there.
    fn has(&self, name: &str) -> Option<bool> {
        match self.fields.contains_key(name) {
            true => Some(true),
            false if self.is_open || self.schema.properties.get(name).is_some() => None,
            false => Some(false),
        }
    }

    /// The most fields that it may have.
    fn most(&self) -> usize {
        if self.is_open {
            return usize::MAX;
        }
        let others = self.schema.properties.iter().filter(|(name, _)| !self.fields.contains_key(name));
        self.fields.len() + others.count()
    }

    /// Whether it meets a clause.
    fn meets(&self, clause: &Schema) -> Option<bool> {
        let of_fields = clause.properties.iter().map(|(name, below)| match self.fields.get(name) {
            Some(value) => value.map(|value| validate(below, value).is_empty()),
            None => self.has(name).map(|has| !has),
        });
        let own = clause.constraints.as_deref().into_iter().flat_map(keywords);
        let rules = clause.rules.iter().map(|_| None);
        all(of_fields.chain(own.map(|keyword| keyword.is_met(self))).chain(rules))
    }
}

/// A keyword that judges an object as a whole.
#[derive(Clone, Copy)]
enum Keyword<'s> {
    Required(&'s str),
    MaxProperties(i64),
    MinProperties(i64),
    Enum(&'s [Json]),
    AllOf(usize, &'s Schema),
    AnyOf(&'s [Schema]),
    OneOf(&'s [Schema]),
    Not(&'s Schema),
}

fn keywords(constraints: &Constraints) -> impl Iterator<Item = Keyword<'_>> {
    let some = |clauses: &'_ [Schema]| !clauses.is_empty();
    let required = constraints.required.iter().map(|name| Keyword::Required(name));
    let all_of = constraints.all_of.iter().enumerate().map(|(index, clause)| Keyword::AllOf(index, clause));
    let others = [
        constraints.max_properties.map(Keyword::MaxProperties),
        constraints.min_properties.map(Keyword::MinProperties),
        (!constraints.allowed.is_empty()).then_some(Keyword::Enum(&constraints.allowed)),
        some(&constraints.any_of).then_some(Keyword::AnyOf(&constraints.any_of)),
        some(&constraints.one_of).then_some(Keyword::OneOf(&constraints.one_of)),
        constraints.not.as_deref().map(Keyword::Not),
    ];
    required.chain(all_of).chain(others.into_iter().flatten())
}

impl<'s> Keyword<'s> {
    fn is_met(self, object: &Object<'_>) -> Option<bool> {
        let within = |least: usize, most: usize, limit: i64| {
            // A negative limit is below any number of fields.
            let limit = usize::try_from(limit).ok();
            match (limit.is_some_and(|limit| most <= limit), limit.is_none_or(|limit| least > limit)) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            }
        };
        let least = object.fields.len();
        match self {
            Self::Required(name) => object.has(name),
            Self::MaxProperties(limit) => within(least, object.most(), limit),
            Self::MinProperties(limit) => not(within(least, object.most(), limit.saturating_sub(1))),
            Self::Enum(allowed) => {
                let is_of = |given: Option<&Value>, own: &Option<&Value>| {
                    given.is_some_and(|given| own.is_none_or(|own| same(own, given)))
                };
                let may_be =
                    |value: &Json| object.fields.iter().all(|(name, own)| is_of(value.get(name), own));
                (!allowed.iter().any(may_be)).then_some(false)
            }
            Self::AllOf(_, clause) => object.meets(clause),
            Self::AnyOf(clauses) => not(all(clauses.iter().map(|clause| not(object.meets(clause))))),
            Self::OneOf(clauses) => exactly_one(clauses.iter().map(|clause| object.meets(clause))),
            Self::Not(clause) => not(object.meets(clause)),
        }
    }

    /// The fields that decide whether it is met, those that it only counts among them.
    fn names(self, schema: &'s Schema, found: &mut BTreeSet<&'s str>) {
        let clauses = match self {
            Self::Required(name) => return found.extend([name]),
            Self::MaxProperties(_) | Self::MinProperties(_) => {
                return found.extend(schema.properties.iter().map(|(name, _)| name));
            }
            Self::Enum(_) => return,
            Self::AnyOf(clauses) | Self::OneOf(clauses) => clauses,
            Self::AllOf(_, clause) | Self::Not(clause) => std::slice::from_ref(clause),
        };
        let below = clauses.iter().filter_map(|clause| clause.constraints.as_deref()).flat_map(keywords);
        below.for_each(|keyword| keyword.names(schema, found));
    }
}

impl fmt::Display for Keyword<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(name) => write!(f, "required: {name}"),
            Self::MaxProperties(limit) => write!(f, "maxProperties: {limit}"),
            Self::MinProperties(limit) => write!(f, "minProperties: {limit}"),
            Self::Enum(_) => f.write_str("enum"),
            Self::AllOf(index, _) => write!(f, "allOf[{index}]"),
            Self::AnyOf(_) => f.write_str("anyOf"),
            Self::OneOf(_) => f.write_str("oneOf"),
            Self::Not(_) => f.write_str("not"),
        }
    }
}

fn not(met: Option<bool>) -> Option<bool> {
    met.map(|met| !met)
}

fn all(met: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for met in met {
        match met {
            Some(true) => {}
            Some(false) => return Some(false),
            None => result = None,
        }
    }
    result
}

fn exactly_one(met: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let (mut sure, mut open) = (0, 0);
    for met in met {
        match met {
            Some(true) => sure += 1,
            Some(false) => {}
            None => open += 1,
        }
    }
    match (sure, open) {
        (1, 0) => Some(true),
        (0, 0) | (2.., _) => Some(false),
        _ => None,
    }
}
