//! ETCH304 and ETCH305: limits of numbers, and of the length of texts, lists and maps.

use std::cmp::Ordering;

use super::keywords::{fields, is_set, keeps_unknown, number, present, refuses_undeclared, text, values};
use super::pair::{Changes, LOOSENED, Pair, before};
use super::ranges::{is_as_strict, is_divided, is_of_type, limit, range_of};
use super::required;
use crate::rule::{Rule, Severity};
use crate::site::shown;
use kube_structural_schema::path::Step;

pub(super) const RANGE_NARROWED: Rule = Rule {
    code: "ETCH304",
    name: "range-narrowed",
    severity: Severity::Error,
    summary: "an upgrade narrows the range of a number",
    help: "\
minimum, maximum or multipleOf is stricter than before, so a number that was valid may be invalid. The API
server refuses to create such an object again, and every update that changes the field. A limit that is not
itself of the type and format beside it, such as 0.5 of an integer, refuses all numbers. The server cuts
limits when it compares integers with them: below an excluded maximum of 0.9, 0 is refused.",
    check: None,
};

pub(super) const LENGTH_NARROWED: Rule = Rule {
    code: "ETCH305",
    name: "length-narrowed",
    severity: Severity::Error,
    summary: "an upgrade narrows how long a text, list or map may be",
    help: "\
minLength, maxLength, minItems, maxItems, uniqueItems, minProperties or maxProperties is stricter than before,
or `additionalProperties: false` allows no further fields, so a value that was valid may be invalid. The API
server refuses to create such an object again, and every update that changes the field. An object that reached
minProperties by a default has too few fields if the default goes.

Limits are often added to bring the cost of a validation rule down. Choose one that no existing object
exceeds. A limit that the old enum, pattern, format or other limits implied is not reported.",
    check: None,
};

/// A limit from below counts where it is above zero, if lengths are meant.
const LENGTHS: [(&str, bool); 6] = [
    ("minLength", true),
    ("maxLength", false),
    ("minItems", true),
    ("maxItems", false),
    ("minProperties", true),
    ("maxProperties", false),
];

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    for keyword in ["minimum", "maximum", "multipleOf"] {
        match (refuses_all(pair, keyword, changes), keyword) {
            (true, _) => {}
            (false, "minimum") => bound(pair, keyword, "exclusiveMinimum", changes),
            (false, "maximum") => bound(pair, keyword, "exclusiveMaximum", changes),
            (false, _) => multiple(pair, keyword, changes),
        }
    }
    for (keyword, is_least) in LENGTHS {
        let limit = |schema| number(schema, keyword).filter(|limit| !is_least || *limit > 0.0);
        let order = stricter(limit(pair.old), limit(pair.new), is_least);
        say(pair, &[keyword], order, &LENGTH_NARROWED, changes);
    }
    match (is_set(pair.old, "uniqueItems"), is_set(pair.new, "uniqueItems")) {
        (false, true) => changes.add(&LENGTH_NARROWED, pair.path.clone(), "items must be unique now"),
        (true, false) => changes.add(&LOOSENED, pair.path.clone(), "items need not be unique any more"),
        _ => {}
    }
    match (refuses_undeclared(pair.old), refuses_undeclared(pair.new)) {
        (false, true) => {
            let message =
                "fields that the schema does not declare are refused now (additionalProperties: false)";
            changes.add(&LENGTH_NARROWED, pair.path.join(Step::Values), message);
        }
        // Where they are kept, that is the finding.
        (true, false) if values(pair.new).is_none() && !keeps_unknown(pair.new) => {
            let message = "fields that the schema does not declare are dropped now, and were refused";
            changes.add(&LOOSENED, pair.path.join(Step::Values), message);
        }
        _ => {}
    }
}

/// A number of fields that defaults no longer reach: an object that relied on them has too few.
pub(super) fn default_gone(pair: &Pair<'_>, changes: &mut Changes) {
    let keyword = "minProperties";
    let least = |schema| number(schema, keyword).unwrap_or_default() as usize;
    let (before, after) = (least(pair.old), least(pair.new));
    let defaulted = |schema| fields(schema).filter(|(_, field)| present(field, "default").is_some());
    let needed = |name: &str| required::default(pair.old, name).is_none();
    let needed: Vec<_> = required::names(pair.old).filter(|name| needed(name)).collect();
    // With so many fields of its own a manifest was valid.
    let own = needed.len().max(before.saturating_sub(defaulted(pair.old).count()));
    let filled = defaulted(pair.new).filter(|(name, _)| !needed.contains(&name.as_str())).count();
    let is_gone = defaulted(pair.old).any(|(name, _)| required::default(pair.new, name).is_none());
    // A greater limit is reported as such.
    if is_gone && after <= before && own + filled < after {
        let message = format!("{keyword} is {after}, and fewer fields have a default");
        changes.add(&LENGTH_NARROWED, pair.path.clone(), message);
    }
}

fn bound(pair: &Pair<'_>, keyword: &str, exclusive: &str, changes: &mut Changes) {
    let is_least = keyword == "minimum";
    let [old, new] = [pair.old, pair.new].map(|schema| limit(schema, is_least));
    let is_integer = text(pair.declared, "type") == "integer";
    let order = match (old, new) {
        (Some(old), Some(new)) if !is_as_strict(old, new, is_integer) => Ordering::Greater,
        (Some(old), Some(new)) if !is_as_strict(new, old, is_integer) => Ordering::Less,
        _ => new.is_some().cmp(&old.is_some()),
    };
    let is_same = old.zip(new).is_some_and(|((old, _), (new, _))| old == new);
    let (rule, what) = match order {
        Ordering::Greater if !pair.may_refuse(&[keyword, exclusive]) => return,
        Ordering::Greater if is_same => (&RANGE_NARROWED, "excluded"),
        Ordering::Less if is_same => (&LOOSENED, "included"),
        _ => return say(pair, &[keyword, exclusive], order, &RANGE_NARROWED, changes),
    };
    changes.add(rule, pair.path.clone(), format!("the {keyword} itself is {what} now"));
}

fn multiple(pair: &Pair<'_>, keyword: &str, changes: &mut Changes) {
    let order = match (number(pair.old, keyword), number(pair.new, keyword)) {
        (Some(old), Some(new)) if old == new => Ordering::Equal,
        (Some(old), Some(new)) if is_divided(old, new) => Ordering::Less,
        (Some(_), Some(_)) => Ordering::Greater,
        (old, new) => new.is_some().cmp(&old.is_some()),
    };
    say(pair, &[keyword], order, &RANGE_NARROWED, changes);
}

/// Whether a limit comes to refuse all numbers, since it is not itself of the type or the format beside it.
fn refuses_all(pair: &Pair<'_>, keyword: &str, changes: &mut Changes) -> bool {
    let is_new = !pair.is_in_clause() && is_of_type(pair.old, keyword) && !is_of_type(pair.new, keyword);
    if is_new {
        let [kind, format] = ["type", "format"].map(|keyword| text(pair.new, keyword));
        let of = if range_of(kind, format).is_some() { format } else { kind };
        let limit = shown(&pair.new[keyword]);
        let message = format!("{keyword} is {limit}, which is no {of}, so all numbers are refused");
        changes.add(&RANGE_NARROWED, pair.path.clone(), message);
    }
    is_new
}

/// Whether a limit is stricter than before: greater. Without one, all is allowed.
fn stricter(old: Option<f64>, new: Option<f64>, is_least: bool) -> Ordering {
    match (old, new) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(old), Some(new)) => {
            let order = new.total_cmp(&old);
            if is_least { order } else { order.reverse() }
        }
    }
}

fn say(pair: &Pair<'_>, keywords: &[&str], order: Ordering, rule: &'static Rule, changes: &mut Changes) {
    let rule = match order {
        Ordering::Greater if !pair.may_refuse(keywords) => return,
        Ordering::Greater => rule,
        Ordering::Less => &LOOSENED,
        Ordering::Equal => return,
    };
    let keyword = keywords[0];
    let message = match present(pair.new, keyword) {
        Some(new) => format!("{keyword} is {}; before, {}", shown(new), before(present(pair.old, keyword))),
        None => format!("there is no {keyword} any more"),
    };
    changes.add(rule, pair.path.clone(), message);
}
