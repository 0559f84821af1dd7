//! Struct tags: only `json`.

use crate::go_types::{JsonTag, unquote};

/// The `json` tag in a literal as it stands in the source.
pub(super) fn json(literal: &str) -> Option<JsonTag> {
    let text = unquote(literal)?;
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start_matches(' ');
        let (key, behind) = rest.split_once(":\"")?;
        let end = closing(behind)?;
        if key == "json" {
            return Some(read(&unquote(&format!("\"{}\"", &behind[..end]))?));
        }
        rest = &behind[end + 1..];
    }
}

/// Where the quote stands that ends a value.
fn closing(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, letter)| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

fn read(value: &str) -> JsonTag {
    let mut parts = value.split(',');
    let name = parts.next().unwrap_or_default().to_owned();
    // `-,` is a field with this name.
    if name == "-" && !value.contains(',') {
        return JsonTag { is_skipped: true, ..JsonTag::default() };
    }
    let mut tag = JsonTag { name, ..JsonTag::default() };
    for option in parts {
        match option {
            "omitempty" => tag.omitempty = true,
            "omitzero" => tag.omitzero = true,
            "inline" => tag.inline = true,
            _ => {}
        }
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_go_reads_them() {
        let tag = |name: &str, omitempty: bool, inline: bool| {
            Some(JsonTag { name: name.to_owned(), omitempty, inline, ..JsonTag::default() })
        };
        for (literal, expected) in [
            (r#"`json:"a,omitempty"`"#, tag("a", true, false)),
            (r#"`protobuf:"bytes,1,opt,name=a" json:",inline" yaml:"b"`"#, tag("", false, true)),
            (r#""json:\"a\"""#, tag("a", false, false)),
            (r#"`json:"-"`"#, Some(JsonTag { is_skipped: true, ..JsonTag::default() })),
            (r#"`json:"-,"`"#, tag("-", false, false)),
            (r#"`yaml:"a\"b" json:"c"`"#, tag("c", false, false)),
            (r#"`yaml:"a"`"#, None),
            ("`json:a`", None),
            ("`json:\"a`", None),
        ] {
            assert_eq!(json(literal), expected, "{literal}");
        }
    }
}
