//! ETCH304 and ETCH305: limits of numbers, and of the length of texts, lists and maps.

use std::cmp::Ordering;

use serde_json::Value;

use super::pair::{Changes, LOOSENED, Pair, before, is_set, present, text};
use crate::rule::{Rule, Severity};
use crate::site::shown;

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
minLength, maxLength, minItems, maxItems, uniqueItems, minProperties or maxProperties is stricter than before, so a value that was
valid may be invalid. The API server refuses to create such an object again, and every update that changes the field.

Limits are often added to bring the cost of a validation rule down. Choose one that no existing object exceeds.",
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
        say(pair, keyword, order, &LENGTH_NARROWED, changes);
    }
    match (is_set(pair.old, "uniqueItems"), is_set(pair.new, "uniqueItems")) {
        (false, true) => changes.add(&LENGTH_NARROWED, pair.path.clone(), "items must be unique now"),
        (true, false) => changes.add(&LOOSENED, pair.path.clone(), "items need not be unique any more"),
        _ => {}
    }
}

fn bound(pair: &Pair<'_>, keyword: &str, exclusive: &str, is_least: bool, changes: &mut Changes) {
    let (old, new) = (number(pair.old, keyword), number(pair.new, keyword));
    let of_integers = |schema| whole(schema, keyword, exclusive, is_least);
    if of_integers(pair.old).is_some() && of_integers(pair.old) == of_integers(pair.new) {
        return;
    }
    let mut order = stricter(old, new, is_least);
    if order == Ordering::Equal && new.is_some() {
        order = is_set(pair.new, exclusive).cmp(&is_set(pair.old, exclusive));
        if order != Ordering::Equal {
            let (rule, what) = match order {
                Ordering::Greater => (&RANGE_NARROWED, "excluded"),
                _ => (&LOOSENED, "included"),
            };
            return changes.add(rule, pair.path.clone(), format!("the {keyword} itself is {what} now"));
        }
    }
    say(pair, keyword, order, &RANGE_NARROWED, changes);
}

/// The least or the largest integer that a limit allows; `None` where other numbers are allowed too, or without
/// a limit.
fn whole(schema: &Value, keyword: &str, exclusive: &str, is_least: bool) -> Option<f64> {
    let limit = number(schema, keyword).filter(|_| text(schema, "type") == "integer")?;
    let is_exclusive = is_set(schema, exclusive);
    Some(match (is_least, is_exclusive) {
        (true, false) => limit.ceil(),
        (true, true) => limit.floor() + 1.0,
        (false, false) => limit.floor(),
        (false, true) => limit.ceil() - 1.0,
    })
}

/// As the server takes a quotient of doubles for whole.
fn is_whole(quotient: f64) -> bool {
    (quotient - quotient.round()).abs() < 1e-9 * quotient.abs()
}

fn multiple(pair: &Pair<'_>, changes: &mut Changes) {
    let keyword = "multipleOf";
    let order = match (number(pair.old, keyword), number(pair.new, keyword)) {
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(old), Some(new)) if old != new && is_whole(old / new) => Ordering::Less,
        (Some(old), Some(new)) if old != new => Ordering::Greater,
        _ => Ordering::Equal,
    };
    say(pair, keyword, order, &RANGE_NARROWED, changes);
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

fn say(pair: &Pair<'_>, keyword: &str, order: Ordering, rule: &'static Rule, changes: &mut Changes) {
    let rule = match order {
        Ordering::Greater => rule,
        Ordering::Less => &LOOSENED,
        Ordering::Equal => return,
    };
    let message = match present(pair.new, keyword) {
        Some(new) => format!("{keyword} is {}; before, {}", shown(new), before(present(pair.old, keyword))),
        None => format!("there is no {keyword} any more"),
    };
    changes.add(rule, pair.path.clone(), message);
}

fn number(schema: &Value, keyword: &str) -> Option<f64> {
    // -0.0 and 0.0 are the same limit.
    present(schema, keyword).and_then(Value::as_f64).map(|number| number + 0.0)
}
