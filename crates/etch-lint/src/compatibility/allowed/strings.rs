//! Which texts there were, by their patterns, lengths and formats.

use serde_json::Value;

use super::place::Allowed;
use crate::compatibility::keywords::{list, number, present, text};
use crate::site::is_known_format;
use go_text::regexp::Texts;
use kube_structural_schema::format::{Look, look};

/// Longer texts are not told apart.
const LONGEST: f64 = 1024.0;

pub(super) fn all_fit(allowed: &Allowed<'_>, keyword: &str, schema: &Value) -> bool {
    let limits = || allowed.held.iter().filter_map(|held| number(held, keyword));
    let limit = number(schema, keyword).unwrap_or_default();
    match keyword {
        _ if limit < 0.0 => return false,
        "minLength" if limits().any(|held| held >= limit) => return true,
        "maxLength" if limits().any(|held| held <= limit) => return true,
        "format" if !is_known_format(text(schema, "type"), text(schema, keyword)) => return true,
        // The server lets lists pass where it looks at a format.
        "enum" if allowed.held.iter().any(|held| present(held, "format").is_some()) => return false,
        _ if allowed.kind() != Some("string") || limit > LONGEST => return false,
        _ => {}
    }
    let new = match keyword {
        "minLength" => vec![Texts::of_length(limit as u32, None)],
        "maxLength" => vec![Texts::of_length(0, Some(limit as u32))],
        "enum" => vec![Texts::one_of(list(schema, keyword).iter().filter_map(Value::as_str))],
        "format" if is_form_of_isbn(allowed, text(schema, keyword)) => return true,
        "format" => {
            look(text(schema, keyword)).filter(|look| look.is_exact).map(of_format).unwrap_or_default()
        }
        _ => Texts::matching(text(schema, keyword)).into_iter().collect(),
    };
    let held: Vec<_> = allowed.held.iter().flat_map(|held| texts(held)).collect();
    !new.is_empty() && new.into_iter().all(|new| Texts::any(&held, &[new]) == Some(false))
}

/// Sets that all texts of a schema are in.
fn texts(schema: &Value) -> Vec<Texts> {
    let mut sets = look(text(schema, "format")).map(of_format).unwrap_or_default();
    sets.extend(
        present(schema, "pattern").and_then(Value::as_str).and_then(|pattern| Texts::matching(pattern).ok()),
    );
    let least = number(schema, "minLength").map_or(0.0, |least| least.clamp(0.0, LONGEST));
    let most = number(schema, "maxLength").filter(|most| *most <= LONGEST);
    if least > 0.0 || most.is_some() {
        sets.push(Texts::of_length(least as u32, most.map(|most| most as u32)));
    }
    sets
}

/// Sets that all texts of a format are in.
fn of_format(look: Look) -> Vec<Texts> {
    let Look { pattern, most, .. } = look;
    let pattern = Texts::matching(&pattern).into_iter();
    pattern.chain(most.map(|most| Texts::of_length(0, Some(most)))).collect()
}

fn is_form_of_isbn(allowed: &Allowed<'_>, format: &str) -> bool {
    let is_form = |held: &&Value| ["isbn10", "isbn13"].contains(&text(held, "format"));
    format == "isbn" && allowed.held.iter().any(is_form)
}
