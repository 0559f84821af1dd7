//! YAML that kubectl reads back as it was: a text that looks like a boolean to it, such as `yes`, is in
//! quotes. It uses neither anchors nor tags, which not every reader knows.

use std::io::{self, Write};

use serde_json::Value;

use crate::scalar::is_plain_text;
use kube_structural_schema::path::{Trail, TrailStep};

/// Writes a document. `note` may put a comment behind the line on which the value at a place
/// begins.
///
/// # Errors
/// What the writer answers.
pub fn write_document(
    out: &mut dyn Write,
    value: &Value,
    note: &dyn Fn(&Trail<'_>) -> Option<&'static str>,
) -> io::Result<()> {
    Writer { out, note }.value(value, 0, Lead::Line, &Trail::ROOT)
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    note: &'a dyn Fn(&Trail<'_>) -> Option<&'static str>,
}

/// What stands on the line already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// Nothing, or an indent and `- `: a field may follow.
    Line,
    /// `name:`
    Name,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, indent: usize, lead: Lead, at: &Trail<'_>) -> io::Result<()> {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                if lead == Lead::Name {
                    self.end(at)?;
                }
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 || lead == Lead::Name {
                        self.indent(indent)?;
                    }
                    self.text(name)?;
                    self.out.write_all(b":")?;
                    let at = at.join(TrailStep::Field(name));
                    // As kubectl has it, the items of a list stand below its name and not further in.
                    let inner = if value.is_array() { indent } else { indent + 2 };
                    self.value(value, inner, Lead::Name, &at)?;
                }
                Ok(())
            }
            Value::Array(items) if !items.is_empty() => {
                if lead == Lead::Name {
                    self.end(at)?;
                }
                for (index, item) in items.iter().enumerate() {
                    if index > 0 || lead == Lead::Name {
                        self.indent(indent)?;
                    }
                    self.out.write_all(b"- ")?;
                    self.value(item, indent + 2, Lead::Line, &at.join(TrailStep::Index(index)))?;
                }
                Ok(())
            }
            scalar => {
                if lead == Lead::Name {
                    self.out.write_all(b" ")?;
                }
                match scalar {
                    Value::Object(_) => self.out.write_all(b"{}")?,
                    Value::Array(_) => self.out.write_all(b"[]")?,
                    Value::String(text) if is_block(text) => return self.block(text, indent, at),
                    Value::String(text) => self.text(text)?,
                    other => write!(self.out, "{other}")?,
                }
                self.end(at)
            }
        }
    }

    /// Ends the line on which a value begins.
    fn end(&mut self, at: &Trail<'_>) -> io::Result<()> {
        match (self.note)(at) {
            Some(note) => writeln!(self.out, "  # {note}"),
            None => self.out.write_all(b"\n"),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if is_plain_text(text) {
            return self.out.write_all(text.as_bytes());
        }
        self.out.write_all(b"\"")?;
        for character in text.chars() {
            match character {
                '"' | '\\' => write!(self.out, "\\{character}")?,
                '\n' => self.out.write_all(b"\\n")?,
                '\t' => self.out.write_all(b"\\t")?,
                character if needs_escape(character) => write!(self.out, "\\u{:04x}", u32::from(character))?,
                character => write!(self.out, "{character}")?,
            }
        }
        self.out.write_all(b"\"")
    }

    fn block(&mut self, text: &str, indent: usize, at: &Trail<'_>) -> io::Result<()> {
        self.out.write_all(if text.ends_with('\n') { b"|" } else { b"|-" })?;
        self.end(at)?;
        for line in text.lines() {
            if !line.is_empty() {
                self.indent(indent)?;
            }
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    fn indent(&mut self, spaces: usize) -> io::Result<()> {
        write!(self.out, "{:spaces$}", "")
    }
}

/// What readers of YAML take for a break or refuse.
fn needs_escape(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a text can stand in lines of its own and nothing of it is lost.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(|character| !needs_escape(character) || character == '\n')
        && text.lines().all(|line| !line.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        let note = |at: &Trail<'_>| (at.to_path().to_string() == ".spec.list").then_some("default");
        write_document(&mut out, value, &note).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn is_laid_out_as_kubectl_does() {
        let value = json!({
            "apiVersion": "v1", "spec": {
                "list": [{"a": 1, "b": []}, [2, [3]], "x"], "empty": {}, "none": null,
            },
        });
        let expected = "\
apiVersion: v1
spec:
  empty: {}
  list:  # default
  - a: 1
    b: []
  - - 2
    - - 3
  - x
  none: null
";
        assert_eq!(written(&value), expected);
    }

    #[test]
    fn is_read_back_as_it_was() {
        let texts = [
            "",
            "yes",
            "n",
            "010",
            "1.0",
            "~",
            "null",
            "a: b",
            "a #b",
            "# a",
            "- a",
            "-",
            "?",
            "a:",
            ":a",
            "@a",
            "`a`",
            "*a",
            "&a",
            "!a",
            "%a",
            "{a}",
            "[a]",
            "a,b",
            "'a'",
            "\"a\"",
            "|",
            ">",
            " a",
            "a ",
            "a\nb",
            "a\nb\n",
            "\na",
            " a\nb",
            "a\n\n",
            "a\t\nb",
            "a\r\nb",
            "a \nb",
            "\u{1b}",
            "\u{2028}",
            "---",
            "...",
            "--- a",
            "<<",
            "=",
            "2001-12-14",
            "0x1F",
            "1e3",
            ".5",
            "1_000",
            "+1",
            "é",
            "😀",
            "a\u{7f}",
            "1:30",
            "\u{feff}a",
            "\u{fffe}",
            "a\nb\u{ffff}",
            "a\n# b\n",
            "a\n  b\nc",
        ];
        for text in texts {
            let value = json!({"a": text, "b": [text, {"c": text}], text: 1});
            let yaml = written(&value);
            let mut read = Vec::new();
            let _ = crate::read("stdin", yaml.clone().into_bytes(), &mut |document| {
                read.push(document.unwrap_or_else(|(_, error)| panic!("{text:?}: {error}\n{yaml}")).json);
                std::ops::ControlFlow::Continue(())
            });
            assert!(*read[0] == value, "{text:?}\n{yaml}");
        }
    }
}
