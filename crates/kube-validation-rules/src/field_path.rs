//! Places in objects as Kubernetes writes them (`spec.ports[0]`), and the `fieldPath` of rules.
//! It must not look at values.
//!
//! Source: apimachinery `field.Path`, and `ValidFieldPath` in apiextensions-apiserver `schema/cel/validation.go`.

use std::fmt::Write as _;

use kube_structural_schema::path::{Step, Trail};
use kube_structural_schema::schema::Schema;

/// The place below a base that is in that form already; the root of nothing is `<nil>`.
pub(super) fn render(base: &str, trail: &Trail<'_>) -> String {
    let text = below(base, trail);
    if text.is_empty() { "<nil>".to_owned() } else { text }
}

/// One field below that place.
pub(super) fn render_child(base: &str, trail: &Trail<'_>, name: &str) -> String {
    let mut text = below(base, trail);
    push_name(&mut text, name);
    text
}

fn below(base: &str, trail: &Trail<'_>) -> String {
    let mut text = base.to_owned();
    for step in trail.to_path().steps() {
        match step {
            Step::Field(name) => push_name(&mut text, name),
            Step::Key(key) => push_index(&mut text, key),
            Step::Index(index) => push_index(&mut text, index),
            // Places in objects have no such steps.
            Step::Items | Step::Values => {}
        }
    }
    text
}

fn push_name(text: &mut String, name: &str) {
    if name.is_empty() {
        return push_index(text, name);
    }
    if !text.is_empty() {
        text.push('.');
    }
    text.push_str(name);
}

fn push_index(text: &mut String, index: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "[{index}]");
}

/// The `fieldPath` of a rule in the form of [`render`]; none where it leads to nothing that the schema knows.
pub(super) fn normalize(path: &str, schema: &Schema) -> Option<String> {
    let mut text = String::new();
    let mut reached = Some(schema);
    let mut rest = path;
    while !rest.is_empty() {
        let (token, tail) = next_token(rest);
        let (name, tail) = match token {
            "." => {
                let (name, tail) = next_token(tail);
                (name.to_owned(), tail)
            }
            "[" => {
                let (quoted, tail) = next_token(tail);
                let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
                let (close, tail) = next_token(tail);
                (close == "]").then_some(())?;
                (unquote(inner)?, tail)
            }
            _ => return None,
        };
        if name.is_empty() {
            return None;
        }
        // Below `additionalProperties: true` nothing is known, and upstream does not look out for that.
        let at = reached?;
        if !at.properties.is_empty() {
            reached = Some(at.properties.get(&name)?);
            push_name(&mut text, &name);
        } else {
            reached = at.additional.as_ref().map(|_| at.additional_schema())?;
            push_index(&mut text, &name);
        }
        rest = tail;
    }
    (!text.is_empty()).then_some(text)
}

/// The next delimiter, quoted text or name.
fn next_token(text: &str) -> (&str, &str) {
    if text.starts_with('\'') {
        let bytes = text.as_bytes();
        let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
        return text.split_at(close.map_or(text.len(), |close| close + 1));
    }
    match text.find(['.', '[', ']']) {
        Some(0) => text.split_at(1),
        Some(end) => text.split_at(end),
        None => (text, ""),
    }
}

fn unquote(text: &str) -> Option<String> {
    let mut unquoted = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            unquoted.push(character);
            continue;
        }
        unquoted.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(_) => return None,
        });
    }
    Some(unquoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_structural_schema::json::Json;
    use kube_structural_schema::path::TrailStep;

    #[test]
    fn places_are_written_as_kubernetes_does() {
        assert_eq!(render("", &Trail::ROOT), "<nil>");
        assert_eq!(render("spec", &Trail::ROOT), "spec");
        let map = Trail::ROOT.join(TrailStep::Key("a.b"));
        let item = map.join(TrailStep::Index(3));
        let field = item.join(TrailStep::Field("x"));
        assert_eq!(render("", &field), "[a.b][3].x");
        assert_eq!(render("spec", &field), "spec[a.b][3].x");
        assert_eq!(render_child("", &Trail::ROOT, "a.b"), "a.b");
        let named_nil = Trail::ROOT.join(TrailStep::Field("<nil>"));
        assert_eq!(render_child("", &named_nil, "a.b"), "<nil>.a.b");
    }

    #[test]
    fn field_paths_must_lead_somewhere() {
        let schema = Json::parse(
            br#"{"type":"object","properties":{"a":{"type":"object","properties":{"b.c":{"type":"string"}}},
            "m":{"type":"object","additionalProperties":{"type":"string"}},"l":{"type":"array","items":{"type":"string"}}}}"#,
        )
        .expect("well-formed");
        let schema = Schema::parse(&schema).expect("a schema");
        let cases = [
            (".a", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            ("['a']['b.c']", Some("a.b.c")),
            (".m['x\\'y']", Some("m[x'y]")),
            (".m.k", Some("m[k]")),
            (".l[0]", None),
            (".x", None),
            ("a", None),
            (".a.", None),
            (".a[b]", None),
            (".a['b.c'", None),
            (".m['\\x']", None),
            ("", None),
        ];
        for (path, expected) in cases {
            assert_eq!(normalize(path, &schema).as_deref(), expected, "{path}");
        }
    }
}
