//! JSON for programs and people: indented, with numbers as API servers write them. Some programs read `1e20`
//! as another number than `100000000000000000000`.

use std::io::{self, Write};

use kube_structural_schema::json::Json;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes a value as JSON, indented, with a newline at the end.
///
/// # Errors
/// What the writer answers.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, Indented(PrettyFormatter::new())))?;
    out.write_all(b"\n")
}

struct Indented(PrettyFormatter<'static>);

impl Formatter for Indented {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(&Json::from(serde_json::Value::from(value)).to_go_vec())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_written_as_by_api_servers() {
        let written = |value: serde_json::Value| {
            let mut text = Vec::new();
            write_json(&mut text, &value).expect("memory");
            String::from_utf8_lossy(&text).into_owned()
        };
        for (number, expected) in [
            (12345678901234567890_f64, "12345678901234567000\n"),
            (1e20, "100000000000000000000\n"),
            (1e21, "1e+21\n"),
            (1e-6, "0.000001\n"),
            (1e-7, "1e-7\n"),
            (2.0, "2\n"),
            (-0.5, "-0.5\n"),
        ] {
            assert_eq!(written(json!(number)), expected);
        }
        let nested = written(json!({ "a": [[], {}, { "b": 1 }] }));
        assert_eq!(nested, "{\n  \"a\": [\n    [],\n    {},\n    {\n      \"b\": 1\n    }\n  ]\n}\n");
    }
}
