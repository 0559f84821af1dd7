//! `etch admit`: what EmbeddedSchemas answer to a request, without a cluster.
//! Facts and Secrets come from files, not from a cluster.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use etch::source;
use etch_admission::Operation;
use etch_answers::admit::{Answered, Asked, Asking};
use etch_answers::documents::Embedded;
use kube_structural_schema::json::Json;
use serde_json::{Map, Value};

use super::one_stdin;
use crate::commands::emit::{emit_object, ended};
use crate::commands::global::Format;
use crate::commands::outcome::Outcome;

/// Print the answer of EmbeddedSchemas to a request
///
/// The answer is {allowed, object, errors, warnings}: the object with its defaults, every error with its
/// field, and the warnings. `object` is null if an extension is missing or has wrong types, so that it can
/// have no defaults. The command judges an update as if the whole object were new; with --ratchet it judges
/// it by what it changes, as the operator does. Exit status: 0 if the request is allowed, 1 if it is denied,
/// 2 if the command failed, or if no EmbeddedSchema targets the resource of any object.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch admit --schema aws.yaml --facts facts.json machine.yaml
  etch admit --schema aws.yaml --facts facts.json --secrets aws-credentials -o json machine.yaml
  etch admit --schema schemas/ --operation UPDATE --old before.yaml --ratchet after.yaml
  etch admit --schema schemas/ --requests requests.jsonl")]
pub(crate) struct Admit {
    /// The object: a file, or - for standard input
    #[arg(value_name = "OBJECT")]
    object: Option<PathBuf>,
    /// Files or folders with EmbeddedSchemas; repeatable
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    schema: Vec<PathBuf>,
    /// The facts about the cluster: a file with a map of facts by name, in JSON or YAML
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// The Secrets that exist, as NAME or NAMESPACE/NAME; without this flag no reference is checked
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 0..=1, default_missing_value = "")]
    secrets: Option<Vec<String>>,
    /// The operation of the request [default: UPDATE with --old, CREATE otherwise]
    #[arg(long, value_enum, ignore_case = true)]
    operation: Option<Does>,
    /// The object before an update
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// Judge updates by what they change, if the schema enables it
    #[arg(long)]
    ratchet: bool,
    /// Many requests, one JSON object per line: {object, oldObject, operation, facts, secrets}, or an
    /// AdmissionReview. The command prints one line of JSON for each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["object", "old"])]
    requests: Option<PathBuf>,
    /// Output format [default: yaml, or json with --requests]
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Does {
    /// Create the object
    Create,
    /// Change the object
    Update,
}

impl Admit {
    pub(crate) fn run(mut self, out: &mut dyn Write) -> Result<Outcome> {
        if self.requests.is_some() && self.output == Some(Format::Yaml) {
            bail!("--requests prints a line of JSON for each request: remove -o yaml");
        }
        // `--schema a.yaml object.yaml`: the object stands behind the last file.
        if self.object.is_none() && self.requests.is_none() && self.schema.len() > 1 {
            self.object = self.schema.pop();
        }
        let given = self.schema.iter().chain(&self.facts).chain(&self.old).chain(&self.object);
        one_stdin(given.chain(&self.requests))?;
        let mut schemas = source::embedded_schemas(&self.schema, &mut io::stdin().lock())?;
        if !self.ratchet {
            schemas = schemas.into_iter().map(without_ratcheting).collect();
        }
        let facts = match &self.facts {
            Some(path) => facts(path)?,
            None => Map::new(),
        };
        let secrets = self.secrets.take();
        let asking = Asking::new(schemas, facts, secrets, self.operation.map(Operation::from));
        match (&self.requests, &self.object) {
            (Some(path), _) => many(&asking, path, out),
            (None, Some(path)) => self.one(&asking, path, out),
            (None, None) => bail!("provide an OBJECT, or a file with --requests"),
        }
    }

    fn one(&self, asking: &Asking, path: &Path, out: &mut dyn Write) -> Result<Outcome> {
        let old = self.old.as_deref().map(object).transpose()?;
        if old.is_some() && self.operation == Some(Does::Create) {
            bail!("--old needs --operation UPDATE");
        }
        let answered = asking.answer(Asked::new(object(path)?, old))?;
        let is_clean = answered.is_allowed();
        let Answered { answer, other } = answered;
        if let Some(other) = other {
            bail!("{}: {}", path.display(), asking.no_target(&BTreeSet::from([other])));
        }
        emit_object(out, self.output.unwrap_or_default(), &*answer)?;
        ended(Vec::new(), is_clean)
    }
}

fn many(asking: &Asking, path: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let reader: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).with_context(|| format!("{}: cannot be read", path.display()))?),
    };
    let (mut is_clean, mut is_targeted, mut others) = (true, false, BTreeSet::new());
    for (number, line) in BufReader::new(reader).lines().enumerate() {
        let place = || format!("{}, line {}", path.display(), number + 1);
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let answered = Asked::parse(line.as_bytes()).and_then(|asked| asking.answer(asked));
        let answered = answered.with_context(place)?;
        is_clean &= answered.is_allowed();
        let Answered { answer, other } = answered;
        is_targeted |= other.is_none();
        others.extend(other);
        out.write_all(&answer.to_vec())?;
        writeln!(out)?;
    }
    let failure = match is_targeted {
        true => None,
        false if others.is_empty() => Some("contains no request".to_owned()),
        false => Some(asking.no_target(&others)),
    };
    let failures = failure.map(|failure| format!("{}: {failure}", path.display()));
    ended(failures.into_iter().collect(), is_clean)
}

fn without_ratcheting(one: Embedded) -> Embedded {
    Embedded { schema: one.schema.without_ratcheting(), ..one }
}

/// The only document of a file.
fn document(path: &Path, what: &str) -> Result<Option<Json>> {
    let mut found = source::documents(&[path.to_owned()], &mut io::stdin().lock())?;
    if found.len() > 1 {
        bail!("{}: name a file with one {what}; this has {}", path.display(), found.len());
    }
    Ok(found.pop().map(|document| document.json))
}

fn object(path: &Path) -> Result<Json> {
    let found = document(path, "object")?.filter(|json| json.get("kind").is_some_and(Value::is_string));
    found.with_context(|| format!("{}: not a Kubernetes object", path.display()))
}

fn facts(path: &Path) -> Result<Map<String, Value>> {
    match document(path, "map of facts")?.map(Json::into_inner) {
        None => Ok(Map::new()),
        Some(Value::Object(facts)) => Ok(facts),
        Some(_) => bail!("{}: not a map of facts", path.display()),
    }
}

impl From<Does> for Operation {
    fn from(does: Does) -> Self {
        match does {
            Does::Create => Self::Create,
            Does::Update => Self::Update,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command};

    #[test]
    fn many_answers_are_lines_of_json() {
        let read = |output: &str| {
            let line = format!("etch admit --schema missing.yaml --requests missing.jsonl {output}");
            let Command::Admit(admit) =
                Cli::try_parse_from(line.split_whitespace()).expect("arguments").command
            else {
                panic!("{line}")
            };
            admit.run(&mut Vec::new()).expect_err("no such file").to_string()
        };
        assert!(read("-o yaml").contains("remove -o yaml"));
        for output in ["", "-o json"] {
            assert!(read(output).contains("missing.yaml"), "{output}");
        }
    }
}
