//! EmbeddedSchemas, ready for requests.

use etch_admission::{Compiled, Declaration, Problem, unknown_fields};
use kube_manifests::{Document, Origin};
use serde_json::Value;

use super::error::SourceError;

/// An `EmbeddedSchema` of a file.
#[derive(Debug)]
pub struct Embedded {
    /// Where it comes from.
    pub origin: Origin,
    /// Its name.
    pub name: String,
    /// What it declares, made ready.
    pub schema: Compiled,
}

/// Why files give no schemas.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A declaration that cannot be served.
    #[error("{}", listed(origin, name, problems))]
    Broken {
        /// Where it comes from.
        origin: Origin,
        /// Its name.
        name: String,
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// There is none.
    #[error("these files contain no EmbeddedSchema")]
    None,
}

/// The EmbeddedSchemas among documents, in the order of their names.
///
/// # Errors
/// The first one that cannot be served, and that there is none.
pub fn embedded(documents: Vec<Document>) -> Result<Vec<Embedded>, EmbeddedError> {
    let mut found = Vec::new();
    for document in documents.into_iter().filter(|document| document.kind() == "EmbeddedSchema") {
        let origin = document.origin;
        let name =
            document.json.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let spec = document.json.get("spec").cloned().unwrap_or_default();
        match compiled(&spec) {
            Ok(schema) => found.push(Embedded { origin, name, schema }),
            Err(problems) => return Err(EmbeddedError::Broken { origin, name, problems }),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if found.is_empty() { Err(EmbeddedError::None) } else { Ok(found) }
}

fn compiled(spec: &Value) -> Result<Compiled, Vec<Problem>> {
    let declared = Declaration::read(spec)?;
    let unknown = unknown_fields(spec, &declared);
    match Compiled::new(&declared) {
        Ok(schema) if unknown.is_empty() => Ok(schema),
        compiled => Err(unknown.into_iter().chain(compiled.err().into_iter().flatten()).collect()),
    }
}

fn listed(origin: &Origin, name: &str, problems: &[Problem]) -> String {
    let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
    format!("{origin}: {name} cannot be served: {}", problems.join("; "))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn read(more: &str) -> Result<Vec<Embedded>, EmbeddedError> {
        let text = format!(
            "apiVersion: etch-operator.io/v1alpha1\nkind: EmbeddedSchema\nmetadata: {{name: a}}\nspec:\n  \
             targets: [{{version: v1, resource: holders, path: .spec.ext}}]\n  rules: []\n{more}"
        );
        let mut documents = Vec::new();
        let _ = kube_manifests::read("schema.yaml", text.into(), &mut |document| {
            documents.extend(document);
            ControlFlow::Continue(())
        });
        embedded(documents)
    }

    #[test]
    fn a_schema_is_read_and_what_it_cannot_say_is_named() {
        assert_eq!(read("").expect("a schema")[0].name, "a");
        for (more, problem) in [
            ("  when: objec == null\n", "spec.when: undeclared reference to 'objec'"),
            ("  enforced: Deny\n", "spec.enforced: there is no such field"),
            (
                "  defaults: [{path: .a, value: \"1\", wher: Empty}]\n",
                "spec.defaults[0].wher: there is no such field",
            ),
            ("  enforcement: Maybe\n", "spec.enforcement: unknown value, expected"),
            ("  required: true\n", "spec.required: invalid type: boolean, expected an object"),
            (
                "  defaultOn: [CREATE, DELETE]\n",
                "spec.defaultOn[1]: unknown value, expected `CREATE` or `UPDATE`",
            ),
        ] {
            let error = read(more).expect_err(more).to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
