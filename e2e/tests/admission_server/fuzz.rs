//! Random and mutated reviews: whatever is sent, the server answers with an AdmissionReview, or reports that
//! the request is none.
//!
//! `ADMISSION_REVIEWS` sets how many; `ADMISSION_SEED` repeats a run.

#![expect(clippy::print_stdout, reason = "what was answered is worth a line")]

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::cluster::documents;
use e2e::environment::number;
use e2e::generate::value;
use e2e::install::root;
use etch::server::admission::{Asked, Phase, Served, review};
use etch_admission::{Compiled, Declaration, Lookup};
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// How many reviews there are, unless `ADMISSION_REVIEWS` sets another number.
const REVIEWS: u64 = 4_000;
/// How many requests are made of one object.
const OF_ONE: u64 = 20;
/// Values that are put in place of others.
const ODD: [&str; 12] = [
    "null",
    "true",
    "-1",
    "1e308",
    "9223372036854775808",
    "\"\"",
    "\"\u{0}\u{fffd}é\"",
    "[]",
    "{}",
    "[[[[[[[[]]]]]]]]",
    "[null,1,\"a\",{}]",
    "{\"a.b\":{\"~/\":[{}]}}",
];

#[test]
fn random_reviews_are_answered() -> Result<()> {
    let wanted = number("ADMISSION_REVIEWS")?.unwrap_or(REVIEWS);
    let seed = number("ADMISSION_SEED")?.unwrap_or_else(|| fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    let known = known()?;
    let (mut asked, mut malformed, mut denied, mut changed) = (0_u64, 0_u64, 0_u64, 0_u64);
    while asked < wanted {
        let (spec, schema) = &known[rng.usize(..known.len())];
        let served = Served { schema: schema.clone(), facts: facts(spec, &mut rng), missing: Vec::new() };
        let object = machine(value(&spec["schema"]["openAPIV3Schema"], &mut rng, 70), &mut rng);
        for _ in 0..OF_ONE {
            asked += 1;
            let body = body(&object, &mut rng);
            let answer = answer(&body, &served, &mut rng).with_context(|| {
                format!("ADMISSION_SEED={seed}, request {asked}: {}", String::from_utf8_lossy(&body))
            })?;
            match answer {
                None => malformed += 1,
                Some(response) => {
                    denied += u64::from(response["allowed"] == false);
                    changed += u64::from(response["patch"].is_string());
                }
            }
        }
    }
    println!(
        "{asked} reviews: {denied} denied, {changed} changed, {malformed} malformed; ADMISSION_SEED={seed}"
    );
    ensure!(denied > 0 && changed > 0 && malformed > 0, "ADMISSION_SEED={seed} shows too little");
    Ok(())
}

/// The answer; `None` if the body is no review.
fn answer(body: &[u8], served: &Served, rng: &mut Rng) -> Result<Option<Value>> {
    let Ok(asked) = Asked::parse(body) else { return Ok(None) };
    let phase = if rng.bool() { Phase::Mutate } else { Phase::Validate };
    let there = [None, Some(true), Some(false)][rng.usize(..3)];
    let exists = |_: &Lookup<'_>| there;
    let (answer, _) = review(phase, &[("one", served)], &asked, &exists);
    let mut answer: Value = serde_json::from_slice(&answer.to_vec()).context("the answer is no JSON")?;
    ensure!(answer["kind"] == "AdmissionReview", "the answer is no AdmissionReview");
    let response = answer["response"].take();
    ensure!(response["uid"].is_string() && response["allowed"].is_boolean(), "{response}");
    let warnings = response["warnings"].as_array().into_iter().flatten();
    for warning in warnings {
        let length = warning.as_str().context("a warning is text")?.chars().count();
        ensure!(length <= 256, "a warning of {length} characters");
    }
    Ok(Some(response))
}

/// The shipped schemas, both as declared and as served.
fn known() -> Result<Vec<(Value, Arc<Compiled>)>> {
    let mut known = Vec::new();
    for file in std::fs::read_dir(root().join("yaml/machine-api"))? {
        for mut document in documents(&file?.path())? {
            let spec = document["spec"].take();
            let declared: Declaration = serde_json::from_value(spec.clone())?;
            let compiled = Compiled::new(&declared);
            known.push((spec, Arc::new(compiled.map_err(|problems| anyhow!("{problems:?}"))?)));
        }
    }
    ensure!(known.len() >= 4, "{} schemas", known.len());
    // In an order that a seed repeats.
    known.sort_by_key(|(spec, _)| spec.to_string());
    Ok(known)
}

/// A value for each fact of a schema, mostly one by which it applies.
fn facts(spec: &Value, rng: &mut Rng) -> Value {
    let when = spec["when"].as_str().unwrap_or_default();
    let platform = when.split('\'').nth(3).unwrap_or_default();
    let mut facts = json!({});
    for fact in spec["facts"].as_array().into_iter().flatten() {
        let name = fact["name"].as_str().unwrap_or_default();
        facts[name] = match name {
            "platformStatus" => json!({ "type": platform, "aws": { "region": "eu-west-1" } }),
            _ if !fact["constant"].is_null() => fact["constant"].clone(),
            _ if rng.bool() => json!("demo"),
            _ => json!(rng.bool()),
        };
    }
    if rng.u8(..10) == 0 {
        odd(&mut facts, rng);
    }
    facts
}

fn machine(value: Value, rng: &mut Rng) -> Value {
    let mut machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "x", "namespace": "default" },
        "spec": { "providerSpec": { "value": value } },
    });
    if rng.bool() {
        let set = json!({ "spec": machine["spec"].take() });
        machine["kind"] = json!("MachineSet");
        machine["spec"] = json!({ "template": set });
    }
    machine
}

/// A request about an object, or about a changed copy of it; one in ten is then changed byte by byte.
fn body(object: &Value, rng: &mut Rng) -> Vec<u8> {
    let mut changed = object.clone();
    for _ in 0..rng.usize(..4) {
        odd(&mut changed, rng);
    }
    let resource = if object["kind"] == "Machine" { "machines" } else { "machinesets" };
    let operation = ["CREATE", "UPDATE", "UPDATE", "DELETE"][rng.usize(..4)];
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": operation, "name": "x", "namespace": "default",
            "kind": { "group": "machine.openshift.io", "version": "v1beta1", "kind": object["kind"] },
            "resource": { "group": "machine.openshift.io", "version": "v1beta1", "resource": resource },
            "object": changed, "oldObject": object,
        },
    });
    if rng.u8(..20) == 0 {
        odd(&mut review, rng);
    }
    let mut bytes = review.to_string().into_bytes();
    if rng.u8(..10) == 0 {
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..3) {
                0 => bytes[at] = rng.u8(..),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b"{}[]\",:0"[rng.usize(..8)]),
            }
        }
    }
    bytes
}

/// Puts something odd somewhere, or takes something away.
fn odd(value: &mut Value, rng: &mut Rng) {
    let is_leaf = match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if is_leaf || rng.u8(..8) == 0 {
        *value = serde_json::from_str(ODD[rng.usize(..ODD.len())]).unwrap_or_default();
        return;
    }
    match value {
        Value::Object(fields) => odd_field(fields, rng),
        Value::Array(items) => {
            let at = rng.usize(..items.len());
            match rng.u8(..6) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => odd(&mut items[at], rng),
            }
        }
        _ => {}
    }
}

fn odd_field(fields: &mut Map<String, Value>, rng: &mut Rng) {
    let Some(name) = fields.keys().nth(rng.usize(..fields.len())).cloned() else { return };
    match rng.u8(..8) {
        0 => drop(fields.remove(&name)),
        1 => drop(fields.insert(format!("{name}X"), json!({ "unheard": ["of", 1] }))),
        _ => odd(&mut fields[&name], rng),
    }
}
