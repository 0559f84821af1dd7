//! Two JSON values side by side, line by line, with what only one of them has marked.

use serde_json::Value;

use super::layout::{MARGIN, WIDTH, fitted};
use super::style::Style;

/// Between the columns, for lines that agree, and for those that do not.
const GUTTERS: [&str; 2] = [" │ ", " ◀ "];

/// The text in the right column beside a line that only the left one has.
const ABSENT: &str = "not in etcd";

/// A line of both columns; `None` where the value has no such line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    left: Option<String>,
    right: Option<String>,
}

/// The place of a value in the document around it.
#[derive(Clone, Copy)]
struct Place<'a> {
    depth: usize,
    key: Option<&'a str>,
    /// Whether another member follows, on the left and on the right.
    followed: [bool; 2],
}

/// Draws `left` and `right` under their titles. Members of objects are paired by key; all else by being
/// equal.
pub(super) fn side_by_side(
    style: Style,
    titles: [&str; 2],
    left: Option<&Value>,
    right: Option<&Value>,
) -> Vec<String> {
    let mut rows = Vec::new();
    pair(left, right, Place { depth: 0, key: None, followed: [false; 2] }, &mut rows);
    let column = (WIDTH - MARGIN - GUTTERS[0].chars().count()) / 2;
    let [left_title, right_title] = titles.map(|title| fitted(title, column));
    let heading =
        format!("{}{}{}", style.heading(&left_title), GUTTERS[0], style.heading(right_title.trim_end()));
    let mut before: Option<&Row> = None;
    let mut lines = vec![heading];
    for row in &rows {
        lines.push(draw(style, row, before, column));
        before = Some(row);
    }
    lines
}

fn draw(style: Style, row: &Row, before: Option<&Row>, column: usize) -> String {
    let left = fitted(row.left.as_deref().unwrap_or_default(), column);
    match (&row.left, &row.right) {
        (Some(_), None) => {
            // Shown once for a value of several lines.
            let wording = before.is_some_and(|before| before.right.is_none());
            let right = if wording { String::new() } else { style.aside(&format!("({ABSENT})")) };
            let line = format!("{}{}{right}", style.phantom(&left), style.phantom(GUTTERS[1]));
            line.trim_end().to_owned()
        }
        (_, right) => {
            let agree = row.left.as_ref().map(|line| line.trim_end_matches(','))
                == right.as_ref().map(|line| line.trim_end_matches(','));
            let right = fitted(right.as_deref().unwrap_or_default(), column);
            let gutter = if agree { GUTTERS[0].to_owned() } else { style.phantom(GUTTERS[1]) };
            format!("{left}{gutter}{}", right.trim_end())
        }
    }
}

fn pair(left: Option<&Value>, right: Option<&Value>, place: Place<'_>, rows: &mut Vec<Row>) {
    if let (Some(Value::Object(left)), Some(Value::Object(right))) = (left, right) {
        let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
        keys.sort();
        keys.dedup();
        let (begin, ends) = place.around("{", "}");
        rows.push(Row { left: Some(begin.clone()), right: Some(begin) });
        let last = [left.keys().max(), right.keys().max()];
        for key in keys {
            let followed = last.map(|last| last.is_some_and(|last| last != key));
            let inner = Place { depth: place.depth + 1, key: Some(key), followed };
            pair(left.get(key), right.get(key), inner, rows);
        }
        let [left, right] = ends;
        rows.push(Row { left: Some(left), right: Some(right) });
        return;
    }
    let [left, right] = [(left, 0), (right, 1)]
        .map(|(value, side)| value.map(|value| place.lines(value, side)).unwrap_or_default());
    for index in 0..left.len().max(right.len()) {
        rows.push(Row { left: left.get(index).cloned(), right: right.get(index).cloned() });
    }
}

impl Place<'_> {
    fn label(&self) -> String {
        let indent = "  ".repeat(self.depth);
        self.key.map_or_else(|| indent.clone(), |key| format!("{indent}\"{key}\": "))
    }

    fn comma(&self, side: usize) -> &'static str {
        if self.followed[side] { "," } else { "" }
    }

    /// The first line of a value with a bracket, and the last one for each side.
    fn around(&self, open: &str, close: &str) -> (String, [String; 2]) {
        let indent = "  ".repeat(self.depth);
        let ends = [0, 1].map(|side| format!("{indent}{close}{}", self.comma(side)));
        (format!("{}{open}", self.label()), ends)
    }

    /// The value as a pretty document shows it.
    fn lines(&self, value: &Value, side: usize) -> Vec<String> {
        let text = format!("{}{value:#}{}", self.label(), self.comma(side));
        let indent = "  ".repeat(self.depth);
        let lines = text.lines().enumerate();
        lines
            .map(|(index, line)| if index == 0 { line.to_owned() } else { format!("{indent}{line}") })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Style, side_by_side};

    /// One blank stands for any number of them.
    fn drawn(left: Value, right: Value) -> Vec<String> {
        let lines = side_by_side(Style::PLAIN, ["shown", "held"], Some(&left), Some(&right));
        lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn members_are_paired_by_key_and_each_side_has_its_own_commas() {
        let shown = json!({"group": "cert-manager.io", "kind": "Issuer", "name": "x", "uses": ["a"]});
        let expected = [
            "shown │ held",
            "{ │ {",
            r#""group": "cert-manager.io", ◀ (not in etcd)"#,
            r#""kind": "Issuer", ◀"#,
            r#""name": "x", │ "name": "x""#,
            r#""uses": [ ◀ (not in etcd)"#,
            r#""a" ◀"#,
            "] ◀",
            "} │ }",
        ];
        assert_eq!(drawn(shown, json!({"name": "x"})), expected);
    }

    #[test]
    fn values_that_differ_are_marked() {
        let expected = ["shown │ held", "{ │ {", r#""a": 1 ◀ "a": 2"#, "} │ }"];
        assert_eq!(drawn(json!({"a": 1}), json!({"a": 2})), expected);
        let expected = ["shown │ held", "{ │ {", r#""a": { │ "a": {"#, r#"◀ "b": 1"#, "} │ }", "} │ }"];
        assert_eq!(drawn(json!({"a": {}}), json!({"a": {"b": 1}})), expected);
    }

    #[test]
    fn a_value_may_be_missing_altogether() {
        let lines = side_by_side(Style::PLAIN, ["shown", "held"], Some(&json!(5)), None);
        assert!(lines[1].starts_with("5 ") && lines[1].ends_with("◀ (not in etcd)"), "{lines:?}");
    }
}
