//! The paths of selectable fields and of rules: names behind points, and quoted in brackets.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `ValidFieldPath`.

use crate::field::Field;
use kube_structural_schema::schema::Schema;
use kube_validation_rules::{PathTokens, unquote};

/// What a path leads to.
pub(super) struct Found<'s> {
    /// The path in the form of findings.
    pub(super) path: String,
    /// Its first part, as a path of its own.
    pub(super) root: String,
    /// The schema there; none below `additionalProperties: true`.
    pub(super) schema: Option<&'s Schema>,
}

/// Follows a path through a schema.
///
/// # Errors
/// It leads nowhere, in the server's words.
pub(super) fn resolve<'s>(
    path: &str,
    schema: Option<&'s Schema>,
    brackets: bool,
) -> Result<Found<'s>, String> {
    const NOWHERE: &str = "does not refer to a valid field";
    const END: &str = "unexpected end of JSON path";
    let mut tokens = PathTokens(path);
    let (mut at, mut root) = (Field::default(), None);
    let mut reached = schema;
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or(END)?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                unquote(inner).ok_or("invalid string literal: invalid escape sequence")?
            }
            "." => tokens.next().ok_or(END)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        // The server fails below a place whose entries have no schema.
        let here = reached.ok_or(NOWHERE)?;
        // Places only grow here.
        if !here.properties.is_empty() {
            reached = Some(here.properties.get(&name).ok_or(NOWHERE)?);
            let _ = at.child(&name);
            root.get_or_insert(name);
        } else if here.additional.is_some() {
            reached = here.additional_schema();
            let _ = at.key(&name);
            root.get_or_insert(format!("[{name}]"));
        } else {
            return Err(NOWHERE.to_owned());
        }
        if token == "[" {
            let close = tokens.next().ok_or(END)?;
            if close != "]" {
                return Err(format!("expected ] but got {close}"));
            }
        }
    }
    Ok(Found { path: at.to_string(), root: root.unwrap_or_default(), schema: reached })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_followed_or_refused_in_the_servers_words() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}}}});
        let schema = Schema::parse(&schema).expect("a schema");
        let cases = [
            (".a.b", Ok("a.b")),
            (".m.x", Ok("m[x]")),
            ("['a']['b']", Ok("a.b")),
            (".a.c", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".a[b]", Err("expected single quoted string but got b")),
            (".a['b'", Err("unexpected end of JSON path")),
        ];
        for (path, expected) in cases {
            let found = resolve(path, Some(&schema), true).map(|found| found.path);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        }
        assert!(resolve(".", None, false).is_err_and(|error| error == "unexpected end of JSON path"));
        assert!(resolve(".a['b']", Some(&schema), false).is_err());
    }
}
