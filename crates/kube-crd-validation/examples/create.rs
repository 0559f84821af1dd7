//! Makes of an object what the API server makes of it when it is created, with the CRD as client libraries
//! have it: `cargo run --example create -- CRD.json OBJECT.json`.

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::error::Error;
use std::io::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_crd_validation::validate;
use kube_structural_schema::{Compiled, Finding, Json, Schema, read};
use serde_json::Value;

/// Drops unknown fields and sets defaults; what the server refuses the object for.
fn create(crd: &CustomResourceDefinition, object: &mut Value) -> Result<Vec<Finding>, Box<dyn Error>> {
    let group = &crd.spec.group;
    let is_meant = |version: &str| object["apiVersion"] == format!("{group}/{version}");
    let version = crd.spec.versions.iter().find(|version| is_meant(&version.name));
    let schema = serde_json::to_value(&version.ok_or("the CRD has no such version")?.schema)?;
    let schema = Schema::parse(&schema["openAPIV3Schema"])?;
    read(object, &schema, &Compiled::new(&schema), &mut |_unknown| {})?;
    Ok(validate(&schema, object))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let mut next = || Ok::<_, Box<dyn Error>>(std::fs::read(files.next().ok_or("two files")?)?);
    let (crd, mut object) = (serde_json::from_slice(&next()?)?, Json::parse(&next()?)?);
    let mut out = std::io::stdout().lock();
    for finding in create(&crd, &mut object)? {
        writeln!(out, "refused: {}", finding.line())?;
    }
    Ok(writeln!(out, "{:#}", *object)?)
}
