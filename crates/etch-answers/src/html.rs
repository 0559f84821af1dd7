//! Parts of a page of HTML that stands alone: no script, and nothing that is loaded from elsewhere.
//! Escapes all text that Etch did not write.

use serde_json::Value;

use super::plain;

/// How long a value within a line may be, and how long any value may be, in characters.
const LINE: usize = 60;
const VALUE: usize = 4000;

/// What every page looks like, in light and dark.
pub const STYLE: &str = include_str!("page.css");

/// A text, in an element or an attribute.
pub fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in plain(text).chars() {
        push(&mut escaped, character);
    }
    escaped
}

/// The same as code, which may break after each dot but the first of a path.
pub fn code(code: &str) -> String {
    let escaped = text(code);
    let (first, rest) = escaped.split_at(usize::from(escaped.starts_with('.')));
    format!("<code>{first}{}</code>", rest.replace('.', ".<wbr>"))
}

/// A value: in a line where it is short, in lines of its own where it is not, and its beginning only where it
/// is long.
pub fn value(value: &Value) -> String {
    let line = value.to_string();
    if line.chars().count() <= LINE {
        return format!("<code>{}</code>", text(&line));
    }
    let pretty = serde_json::to_string_pretty(value).unwrap_or(line);
    let (shown, rest) = match pretty.char_indices().nth(VALUE) {
        Some((end, _)) => (&pretty[..end], "…"),
        None => (pretty.as_str(), ""),
    };
    let mut lines = String::new();
    for character in shown.chars() {
        match character {
            '\n' => lines.push('\n'),
            character if character.is_control() => lines.extend(character.escape_unicode()),
            character => push(&mut lines, character),
        }
    }
    format!("<pre>{lines}{rest}</pre>")
}

/// A bar of as much of its width as a number is of the whole; one that is not zero can be seen.
pub fn bar(number: u64, whole: u64, tone: &str) -> String {
    let percent = if whole == 0 { 0.0 } else { number.min(whole) as f64 * 100.0 / whole as f64 };
    format!("<div class=\"bar\"><div class=\"{}\" style=\"width:{percent:.1}%\"></div></div>", text(tone))
}

fn push(escaped: &mut String, character: char) {
    match character {
        '&' => escaped.push_str("&amp;"),
        '<' => escaped.push_str("&lt;"),
        '>' => escaped.push_str("&gt;"),
        '"' => escaped.push_str("&quot;"),
        '\'' => escaped.push_str("&#39;"),
        character => escaped.push(character),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_have_written_stays_text() {
        for (given, expected) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a & b", "a &amp; b"),
            ("\" onload='x'", "&quot; onload=&#39;x&#39;"),
            ("a\n\u{1b}[1m", "a \\u{1b}[1m"),
            ("ü<", "ü&lt;"),
        ] {
            assert_eq!(text(given), expected, "{given:?}");
        }
        assert_eq!(code(".spec.a[\"<b>\"]"), "<code>.spec.<wbr>a[&quot;&lt;b&gt;&quot;]</code>");
        assert_eq!(value(&json!("</code>")), "<code>&quot;&lt;/code&gt;&quot;</code>");
        let long = json!({ "a": "</pre>", "b": "x".repeat(LINE) });
        let shown = value(&long);
        assert!(shown.starts_with("<pre>{\n  &quot;a&quot;: &quot;&lt;/pre&gt;&quot;,\n"), "{shown}");
        assert!(value(&json!("x".repeat(VALUE))).ends_with("x…</pre>"));
    }

    #[test]
    fn a_bar_is_as_wide_as_its_share() {
        assert!(bar(1, 4, "bad").contains("class=\"bad\" style=\"width:25.0%\""));
        assert!(bar(0, 0, "bad").contains("width:0.0%"));
        assert!(bar(9, 4, "bad").contains("width:100.0%"));
    }
}
