//! ETCH304 and ETCH305: limits of numbers, and of the length of texts, lists and maps.

use std::cmp::Ordering;

use super::keywords::{
    LARGEST_EXACT, fields, is_set, keeps_unknown, number, present, refuses_undeclared, text, values,
    without_sign,
};
use super::pair::{Changes, LOOSENED, Pair, before};
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
minimum, maximum or multipleOf is stricter than before, so a number that was valid may be invalid. The API server refuses to
create such an object again, and every update that changes the field.",
    check: None,
};

pub(super) const LENGTH_NARROWED: Rule = Rule {
    code: "ETCH305",
    name: "length-narrowed",
    severity: Severity::Error,
    summary: "an upgrade narrows how long a text, list or map may be",
    help: "\
minLength, maxLength, minItems, maxItems, uniqueItems, minProperties or maxProperties is stricter than before, or
`additionalProperties: false` allows no further fields, so a value that was valid may be invalid. The API server refuses to create such an object again, and every update that changes the field. An object
that reached minProperties by a default has too few fields if the default goes.

Limits are often added to bring the cost of a validation rule down. Choose one that no existing object exceeds. A limit that the old
enum, pattern, format or other limits implied is not reported.",
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
    bound(pair, "minimum", "exclusiveMinimum", true, changes);
    bound(pair, "maximum", "exclusiveMaximum", false, changes);
    multiple(pair, changes);
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

fn bound(pair: &Pair<'_>, keyword: &str, exclusive: &str, is_least: bool, changes: &mut Changes) {
    let limit = |schema| number(schema, keyword).map(|at| (at, is_set(schema, exclusive)));
    let (old, new) = (limit(pair.old), limit(pair.new));
    let is_integer = text(pair.declared, "type") == "integer";
    let is_exact = old.into_iter().chain(new).all(|(at, _)| at.abs() < LARGEST_EXACT);
    let order = if is_integer && is_exact {
        let whole = |limit: Option<(f64, bool)>| limit.map(|(at, is_out)| whole(at, is_out, is_least));
        stricter(whole(old), whole(new), is_least)
    } else {
        stricter(old.map(|(at, _)| at), new.map(|(at, _)| at), is_least)
            .then_with(|| new.map(|(_, is_out)| is_out).cmp(&old.map(|(_, is_out)| is_out)))
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

/// The first whole number that a limit allows.
fn whole(limit: f64, is_exclusive: bool, is_least: bool) -> f64 {
    let first = match (is_least, is_exclusive) {
        (true, true) => limit.floor() + 1.0,
        (true, false) => limit.ceil(),
        (false, true) => limit.ceil() - 1.0,
        (false, false) => limit.floor(),
    };
    without_sign(first)
}

fn multiple(pair: &Pair<'_>, changes: &mut Changes) {
    let keyword = "multipleOf";
    let order = match (number(pair.old, keyword), number(pair.new, keyword)) {
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(old), Some(new)) if old != new && is_multiple(old, new) => Ordering::Less,
        (Some(old), Some(new)) if old != new => Ordering::Greater,
        _ => Ordering::Equal,
    };
    say(pair, &[keyword], order, &RANGE_NARROWED, changes);
}

/// Whether a number is a multiple of another, up to what the server takes for rounding.
///
/// Source: kube-openapi `pkg/validation/validate/values.go`, `MultipleOf`.
fn is_multiple(number: f64, of: f64) -> bool {
    const ROUNDING: f64 = 1e-9;
    let times = (number / of).round();
    times != 0.0 && (number / of - times).abs() < ROUNDING * times.abs()
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
