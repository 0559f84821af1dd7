//! One conformance vector: a question about a schema, and the API server's answer.

use std::fmt;

use anyhow::{Context, bail};
use kube_structural_schema::json::Json;
use serde_json::{Map, Value, json};

/// What a vector asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// What does a read of a stored object return?
    Read,
    /// Which structural rules does the schema break?
    Structural,
    /// Which of the schema's defaults are invalid?
    Defaults,
    /// What is wrong with an object, once read?
    Validate,
    /// What is a CRD refused for that is created?
    CrdCreate,
    /// What is a CRD refused for that replaces another?
    CrdUpdate,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Structural, Self::Defaults, Self::Validate, Self::CrdCreate, Self::CrdUpdate];

    /// The name in a vector.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Structural => "structural",
            Self::Defaults => "defaults",
            Self::Validate => "validate",
            Self::CrdCreate => "crd-create",
            Self::CrdUpdate => "crd-update",
        }
    }

    /// Whether the question is about an object too, or about an older CRD.
    pub fn takes_object(self) -> bool {
        matches!(self, Self::Read | Self::Validate | Self::CrdUpdate)
    }

    /// Whether the question is about whole CRDs.
    pub fn is_about_crds(self) -> bool {
        matches!(self, Self::CrdCreate | Self::CrdUpdate)
    }

    /// What a vector calls the two documents of a question.
    fn documents(self) -> (&'static str, &'static str) {
        if self.is_about_crds() { ("crd", "old") } else { ("schema", "object") }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Op {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|op| op.as_str() == name).with_context(|| format!("unknown op {name:?}"))
    }
}

/// A question: schema and object, or a CRD and the one before it, as documents; the second is `null` where
/// the op takes none.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What is asked.
    pub op: Op,
    /// An `openAPIV3Schema`, or a CRD.
    pub schema: Json,
    /// The object as stored, or the CRD before.
    pub object: Json,
}

/// One violation, as in apimachinery's `field.Error` without the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issue {
    /// `FieldValueInvalid` and the like.
    pub kind: String,
    /// The place.
    pub field: String,
    /// The API server's wording.
    pub detail: String,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The object that a read returns.
    Object(Json),
    /// What is wrong, in no particular order; nothing where the list is empty.
    Issues(Vec<Issue>),
    /// As [`Outcome::Issues`], and one of each group too: the API server stops at one of them, not always the
    /// same.
    Wavering {
        /// What is wrong in any case.
        certain: Vec<Issue>,
        /// Groups of which one is reported, none of them empty.
        either: Vec<Vec<Issue>>,
    },
    /// The schema itself was not accepted, and why.
    Refused(String),
}

/// A case with its right answer.
#[derive(Clone, Debug)]
pub struct Vector {
    /// What names the vector in reports.
    pub id: String,
    /// The question.
    pub case: Case,
    /// The answer.
    pub expect: Outcome,
}

impl Vector {
    /// Reads one line of a `.jsonl` file.
    ///
    /// # Errors
    /// The line is no JSON document, or not a vector; the message names the missing part.
    pub fn parse(line: &[u8]) -> anyhow::Result<Self> {
        // The expected object is two levels deep in the line.
        let mut document = Json::parse_around(line, 2).context("not a JSON document")?;
        let Value::Object(fields) = &mut *document else { bail!("not a JSON object") };
        let id = match fields.get("id") {
            Some(Value::String(id)) => id.clone(),
            Some(id) => id.to_string(),
            None => bail!("no id"),
        };
        let op: Op = fields.get("op").and_then(Value::as_str).context("no op")?.parse()?;
        let case = Case {
            op,
            schema: take(fields, op.documents().0).with_context(|| format!("no {}", op.documents().0))?,
            object: match take(fields, op.documents().1) {
                None if op.takes_object() => bail!("no {}", op.documents().1),
                object => object.unwrap_or_default(),
            },
        };
        let expect = Outcome::take(&mut take(fields, "expect").context("no expect")?)?;
        Ok(Self { id, case, expect })
    }

    /// The line that [`Vector::parse`] reads, without its newline.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = self.case.to_request(&self.id);
        line.pop();
        line.extend_from_slice(br#","expect":"#);
        line.extend(self.expect.to_json().to_vec());
        line.push(b'}');
        line
    }
}

impl Case {
    /// The question as one line of JSON, without its newline; with an `expect` it would be a vector.
    pub fn to_request(&self, id: &str) -> Vec<u8> {
        let mut line = br#"{"id":"#.to_vec();
        line.extend(Json::from(Value::from(id)).to_vec());
        line.extend_from_slice(br#","op":""#);
        line.extend_from_slice(self.op.as_str().as_bytes());
        let (first, second) = self.op.documents();
        line.extend_from_slice(format!(r#"","{first}":"#).as_bytes());
        line.extend(self.schema.to_vec());
        if self.op.takes_object() {
            line.extend_from_slice(format!(r#","{second}":"#).as_bytes());
            line.extend(self.object.to_vec());
        }
        line.push(b'}');
        line
    }
}

impl Outcome {
    /// Takes an answer out of the `expect` of a vector.
    ///
    /// # Errors
    /// The document holds none of `object`, `errors` and `error`.
    pub fn take(expect: &mut Json) -> anyhow::Result<Self> {
        let Value::Object(fields) = &mut **expect else { bail!("expect is not an object") };
        if let Some(object) = take(fields, "object") {
            return Ok(Self::Object(object));
        }
        if let Some(Value::String(error)) = fields.get("error") {
            return Ok(Self::Refused(error.clone()));
        }
        let errors = fields.get("errors").and_then(Value::as_array).context("expect says nothing")?;
        let text = |error: &Value, name: &str| {
            error
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .with_context(|| format!("an expected error has no {name}"))
        };
        errors
            .iter()
            .map(|error| {
                Ok(Issue {
                    kind: text(error, "type")?,
                    field: text(error, "field")?,
                    detail: text(error, "detail")?,
                })
            })
            .collect::<anyhow::Result<_>>()
            .map(Self::Issues)
    }

    /// The `expect` of a vector; issues are sorted by field, type and detail, and a wavering answer takes the
    /// first.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Object(object) => {
                let mut fields = Map::new();
                fields.insert("object".to_owned(), object.clone().into_inner());
                Value::Object(fields).into()
            }
            Self::Issues(issues) => {
                let mut issues: Vec<_> = issues.iter().collect();
                issues.sort_by_key(|issue| (&issue.field, &issue.kind, &issue.detail));
                let issues: Vec<_> = issues
                    .into_iter()
                    .map(|Issue { kind, field, detail }| {
                        json!({
                            "type": kind, "field": field, "detail": detail,
                        })
                    })
                    .collect();
                json!({ "errors": issues }).into()
            }
            Self::Wavering { certain, either } => {
                let first = either.iter().filter_map(|group| group.first());
                Self::Issues(certain.iter().chain(first).cloned().collect()).to_json()
            }
            Self::Refused(error) => json!({ "error": error }).into(),
        }
    }
}

fn take(fields: &mut Map<String, Value>, name: &str) -> Option<Json> {
    fields.get_mut(name).map(|value| value.take().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_written_as_it_was_read() {
        for line in [
            r#"{"id":"a","op":"read","schema":{"type":"object"},"object":{"b":1.5},"expect":{"object":{}}}"#,
            r#"{"id":"b","op":"structural","schema":{},"expect":{"errors":[{"detail":"d","field":"f","type":"t"}]}}"#,
            r#"{"id":"c","op":"defaults","schema":{},"expect":{"error":"no"}}"#,
            r#"{"id":"d","op":"crd-create","crd":{},"expect":{"errors":[]}}"#,
            r#"{"id":"e","op":"crd-update","crd":{},"old":{},"expect":{"errors":[]}}"#,
        ] {
            let vector = Vector::parse(line.as_bytes()).expect("a vector");
            assert_eq!(String::from_utf8_lossy(&vector.to_line()), line);
        }
    }

    #[test]
    fn what_is_no_vector_says_why() {
        for (line, reason) in [
            (r#"{"id":"a""#, "not a JSON document"),
            (r#"[]"#, "not a JSON object"),
            (r#"{"op":"read"}"#, "no id"),
            (r#"{"id":"a","op":"guess"}"#, "unknown op"),
            (r#"{"id":"a","op":"read","schema":{},"expect":{"object":{}}}"#, "no object"),
            (r#"{"id":"a","op":"structural","schema":{},"expect":{}}"#, "expect says nothing"),
            (r#"{"id":"a","op":"crd-create","schema":{},"expect":{}}"#, "no crd"),
            (r#"{"id":"a","op":"crd-update","crd":{},"expect":{}}"#, "no old"),
        ] {
            let error = Vector::parse(line.as_bytes()).expect_err(line);
            assert!(error.to_string().contains(reason), "{line}: {error}");
        }
    }
}
