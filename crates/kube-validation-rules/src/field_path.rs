//! Places in objects as Kubernetes writes them (`spec.ports[0]`), and the `fieldPath` of rules.
//!
//! Source: apimachinery `field.Path`, and `ValidFieldPath` in apiextensions-apiserver
//! `schema/cel/validation.go`.

use std::fmt::Write as _;

use kube_structural_schema::path::{Step, Trail};
use kube_structural_schema::schema::Schema;

use crate::path_tokens::{PathTokens, unquote};

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

/// A place, empty for a whole object.
pub(super) fn below(base: &str, trail: &Trail<'_>) -> String {
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

/// The `fieldPath` of a rule in the form of [`render`]; `None` if it leads to nothing that the schema knows.
pub(super) fn normalize(path: &str, schema: &Schema) -> Option<String> {
    let mut text = String::new();
    let mut reached = Some(schema);
    let mut tokens = PathTokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => {
                let inner = tokens.next()?.strip_prefix('\'')?.strip_suffix('\'')?;
                (tokens.next()? == "]").then_some(())?;
                unquote(inner)?
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
    }
    (!text.is_empty()).then_some(text)
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
