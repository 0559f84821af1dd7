//! What the commands of Etch answer: what they conclude from what was read, and how it is shown: tables,
//! Markdown and HTML for people, JSON and YAML for programs.

pub mod action;
pub mod admit;
pub mod audit;
pub mod clean;
pub mod documents;
pub mod explain;
pub mod failures;
pub mod fill;
pub mod html;
pub mod impact;
mod json;
pub mod lint;
pub mod markdown;
pub mod once;
pub mod persist;
mod plain;
pub mod plan;
pub mod policy;
pub mod rbac;
pub mod resume;
pub mod revert;
pub mod sample;
pub mod scope;
pub mod status;
mod style;
mod table;

use std::io::{self, Write};

use serde::Serialize;

pub use etch_core::words::counted;
pub use json::write_json;
pub use kube_manifests::write_document;
pub use plain::{first, plain, shortened};
pub use style::{Style, Tone};
pub use table::{Cell, Table};

use kube_structural_schema::json::Json;

/// Writes a value as one document of YAML, for kubectl and people.
///
/// # Errors
/// What the writer answers.
pub fn write_yaml(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let value = serde_json::to_value(value)?;
    write_document(out, &Json::from(value), &|_| None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_end_with_a_newline() {
        let value = json!({"a": [1, "yes"]});
        let (mut json, mut yaml) = (Vec::new(), Vec::new());
        write_json(&mut json, &value).expect("memory");
        write_yaml(&mut yaml, &value).expect("memory");
        assert_eq!(String::from_utf8_lossy(&json), "{\n  \"a\": [\n    1,\n    \"yes\"\n  ]\n}\n");
        assert_eq!(String::from_utf8_lossy(&yaml), "a:\n- 1\n- \"yes\"\n");
    }
}
