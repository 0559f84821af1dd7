//! The software bill of materials, in CycloneDX's JSON: every crate with its checksum, its license and what
//! it needs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::crates::{Crate, Id};
use super::{Release, VERSION};

/// The document for a release.
pub(super) fn document(release: &Release, crates: &BTreeMap<Id, Crate>) -> Result<String> {
    let etch = ("etch".to_owned(), VERSION.to_owned());
    let mut subject = component(&etch, crates.get(&etch).context("etch is no part of its own tree")?);
    subject["type"] = "application".into();
    let others = crates.iter().filter(|(id, _)| **id != etch);
    let components: Vec<Value> = others
        .map(|(id, known)| {
            let mut component = component(id, known);
            // For CycloneDX, what a build needs and the result does not contain.
            component["scope"] = if known.is_linked { "required" } else { "excluded" }.into();
            component
        })
        .collect();
    let dependencies: Vec<Value> = crates
        .iter()
        .map(|(id, known)| {
            json!({
                "ref": purl(id), "dependsOn": known.dependencies.iter().map(purl).collect::<Vec<_>>(),
            })
        })
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.time.to_string(),
            "lifecycles": [{ "phase": "build" }],
            "component": subject,
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{document:#}\n"))
}

fn component(id: &Id, known: &Crate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(id),
        "name": id.0,
        "version": id.1,
        "licenses": [{ "expression": known.license }],
    });
    if let Some(checksum) = &known.checksum {
        component["purl"] = purl(id).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &known.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn purl((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}
