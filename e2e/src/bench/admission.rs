//! How long an EmbeddedSchema takes to review a request, beside a parse of the same request.

use std::io;
use std::path::Path;

use anyhow::Context;
use etch::source;
use etch_admission::{Compiled, Named, Operation, Request, review};
use serde::Serialize;
use serde_json::{Value, json};

use super::clock::{Nanoseconds, each};

/// About how large the Machine is, in bytes.
const BYTES: usize = 10_000;

/// What was measured. Times are nanoseconds, the best of several rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Reviews {
    /// Which schema and object.
    pub name: &'static str,
    /// The object's size as JSON.
    pub bytes: usize,
    /// Setting its defaults and judging it.
    pub review: Nanoseconds,
    /// Judging it.
    pub judge: Nanoseconds,
    /// serde_json's parse of it.
    pub parse: Nanoseconds,
    /// How many reviews, with a parse each, one core does in a second.
    pub per_second: u64,
}

/// Reviews the creation of a Machine on AWS by the schema in `yaml/machine-api`.
///
/// # Errors
/// The schema cannot be read.
pub fn measure() -> anyhow::Result<Reviews> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yaml/machine-api/aws.yaml");
    let schemas = source::embedded_schemas(&[path], &mut io::empty())?;
    let schema = &schemas.first().context("a schema")?.schema;
    let facts = facts();
    let object = machine();
    let text = serde_json::to_vec(&object)?;
    let exists = |_: &etch_admission::Lookup<'_>| Some(true);
    let resource =
        Named::Resource { group: "machine.openshift.io", version: "v1beta1", resource: "machines" };
    let request = Request {
        named: resource,
        operation: Operation::Create,
        object: &object,
        old_object: None,
        facts: &facts,
        exists: &exists,
    };
    let schemas: [(&Compiled, &Value); 1] = [(schema, &facts)];
    let reviewed = each(|| review(&schemas, &request));
    let judged = each(|| schema.judge(&request));
    let parse = each(|| serde_json::from_slice::<Value>(&text));
    let per_second = 1e9 / (reviewed + parse);
    Ok(Reviews {
        name: "aws-machine",
        bytes: text.len(),
        review: reviewed,
        judge: judged,
        parse,
        per_second: per_second as u64,
    })
}

/// The facts by which the schema applies.
pub(super) fn facts() -> Value {
    json!({
        "platformStatus": { "type": "AWS" }, "clusterID": "demo", "region": "eu-west-1", "arch": "amd64",
    })
}

/// A Machine of [`BYTES`].
pub(super) fn machine() -> Value {
    let mut machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "worker", "namespace": "openshift-machine-api" },
        "spec": { "providerSpec": { "value": {
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig", "ami": {
                "id": "ami-1",
            },
            "subnet": { "id": "subnet-1" }, "iamInstanceProfile": { "id": "profile" },
            "blockDevices": [{ "ebs": { "encrypted": true, "volumeSize": 120, "volumeType": "gp3" } }],
            "placement": { "availabilityZone": "eu-west-1a" }, "tags": [],
        } } },
    });
    let mut number = 0;
    while machine.to_string().len() < BYTES {
        number += 1;
        let tag = json!({ "name": format!("kubernetes.io/tag-{number}"), "value": "a value of some length" });
        let value = &mut machine["spec"]["providerSpec"]["value"];
        match number % 3 {
            0 => value["tags"].as_array_mut().into_iter().for_each(|tags| tags.push(tag.clone())),
            _ => machine["metadata"]["annotations"][format!("example.com/{number}")] = json!("x".repeat(60)),
        }
    }
    machine
}
