//! The simulator's server against the write matrix: what it makes of each request that it can express is what
//! real servers did. It sends nothing.
//!
//! It expresses objects of scalars and maps, conversion, and requests to the object itself and to its status.
//! Of the matrix it leaves out: list items, values of maps by any key and embedded metadata, of which it has
//! no schema; the scale; worlds with admission; deletes that a finalizer holds up.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::control_plane::Kubernetes;
use e2e::matrix::{
    self, Admission, Cell, Conversion, Data, Outcome, Owners, Part, Place, Places, World, crd, served,
};
use serde_json::{Value, json};

use simulator::fields::Fields;
use simulator::server::{Content, Effect, Entry, Release, Request, Tag, Untypable, Verb, handle, uid};

/// The fields of `spec` and `status` that are compared: those that an old conversion webhook knows, and the
/// others.
const KNOWN: [&str; 7] = ["size", "replicas", "note", "message", "color", "nested", "state"];

#[test]
fn the_simulator_does_what_the_matrix_shows() -> Result<()> {
    let (mut compared, mut differing) = (0, Vec::new());
    for name in Data::releases()? {
        let data = Data::read(&name)?;
        let untypable = match Kubernetes::supported_release(&name)? >= Kubernetes::supported_release("1.37")?
        {
            true => Untypable::Keeps,
            false => Untypable::Wipes,
        };
        for (world, cells) in &data.outcomes {
            if world.admission != Admission::None {
                continue;
            }
            for (cell, outcome) in cells {
                let Some(request) = request(*cell) else { continue };
                compared += 1;
                let difference = compare(&data, *world, *cell, outcome, &request, untypable);
                differing
                    .extend(difference?.map(|difference| format!("{name} {world} {cell}: {difference}")));
            }
        }
    }
    ensure!(compared > 3_000, "only {compared} cells were compared");
    ensure!(differing.is_empty(), "{} of {compared}:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}

/// The request in the simulator's terms; `None` if they cannot express it.
fn request(cell: Cell) -> Option<Request> {
    let Cell { verb, part, version, owners: _ } = cell;
    let is_to_status = part == Part::Status;
    if part == Part::Scale {
        return None;
    }
    let (place, note) = match is_to_status {
        true => ("/status", json!({ "message": "x" })),
        false => ("/spec/note", json!("x")),
    };
    let with_note = match is_to_status {
        true => json!({ "status": note }),
        false => json!({ "spec": { "note": note } }),
    };
    let identity = json!({ "metadata": { "uid": uid(0) } });
    let (manager, verb, body) = match verb {
        matrix::Verb::Create => ("user", Verb::Create, created()),
        matrix::Verb::CreateByApply => ("user", Verb::Force, created()),
        matrix::Verb::Update => ("user", Verb::Edit, with_note),
        matrix::Verb::Replace => {
            let mut changed = json!({ "spec": { "color": null, "nested": null } });
            // At v1alpha1 there is no status that could lose a field.
            if version != "v1alpha1" {
                changed["status"] = json!({ "state": null });
            }
            unite(&mut changed, with_note);
            ("user", Verb::Edit, changed)
        }
        matrix::Verb::JsonPatch => {
            ("user", Verb::Json, json!([{ "op": "add", "path": place, "value": note }]))
        }
        matrix::Verb::Remove => ("user", Verb::Json, json!([{ "op": "remove", "path": "/spec/color" }])),
        matrix::Verb::MergePatch => ("user", Verb::Merge, with_note),
        matrix::Verb::Apply => ("user", Verb::Force, with_note),
        matrix::Verb::Identity => ("etch", Verb::Apply, identity),
        matrix::Verb::Empty => ("etch", Verb::Merge, identity),
        matrix::Verb::Delete => return None,
    };
    Some(Request { version: version.to_owned(), manager: manager.to_owned(), verb, is_to_status, body })
}

fn base() -> Value {
    json!({ "spec": { "size": 1, "replicas": 1 } })
}

/// Adds the fields of another object.
fn unite(object: &mut Value, other: Value) {
    match (object, other) {
        (Value::Object(fields), Value::Object(others)) => {
            others
                .into_iter()
                .for_each(|(name, other)| unite(fields.entry(name).or_insert(Value::Null), other));
        }
        (object, other) => *object = other,
    }
}

/// What is sent to create an object.
fn created() -> Value {
    json!({ "spec": base()["spec"], "status": { "message": "x" } })
}

/// The CRD of a world, as far as the simulator has schemas.
fn release(world: World, cell: Cell) -> Release {
    let mut document = crd(world, matrix::GROUP, served(cell.version), &json!({}));
    for version in document["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let properties = &mut version["schema"]["openAPIV3Schema"]["properties"];
        *properties = json!({ "spec": properties["spec"], "status": properties["status"] });
        if let Some(fields) = properties["spec"]["properties"].as_object_mut() {
            fields.retain(|field, _| KNOWN.contains(&field.as_str()));
        }
    }
    let webhook_knows: Option<&[&str]> = match world.conversion {
        Conversion::None => None,
        Conversion::New => Some(&KNOWN),
        Conversion::Old => Some(&KNOWN[..4]),
    };
    Release::new(document, &["v1".to_owned(), "v1alpha1".to_owned()]).converted_by(webhook_knows)
}

fn compare(
    data: &Data,
    world: World,
    cell: Cell,
    outcome: &Outcome,
    request: &Request,
    untypable: Untypable,
) -> Result<Option<String>> {
    let release = release(world, cell);
    let before = match cell.owners {
        Owners::New => None,
        owners => Some(Content {
            version: if owners == Owners::StoredV1alpha1 { "v1alpha1" } else { "v1" }.to_owned(),
            value: base(),
            owners: entries(data, &outcome.before)?,
        }),
    };
    let live = before.as_ref().map(|content| (content, Tag { uid: 0, revision: 1 }.metadata()));
    let after = match handle(&release, untypable, live, request) {
        Ok(Effect::Stored(content)) => Ok(content),
        Ok(Effect::Deleted) => return Ok(Some("the simulator deletes it".to_owned())),
        Err(refused) => Err(refused),
    };
    let (code, _) = outcome.answer.split_once(' ').unwrap_or((&outcome.answer, ""));
    let simulated =
        after.as_ref().map_or_else(|refused| refused.code, |_| if before.is_some() { 200 } else { 201 });
    if code != simulated.to_string() {
        return Ok(Some(format!(
            "the server answered {}, the simulator {simulated}: {after:?}",
            outcome.answer
        )));
    }
    let Ok(content) = after else { return Ok(None) };
    let raw = outcome.raw.as_ref().context("an object")?;
    let (real, simulated) = (known(&raw.holds), known(&Places::of(&content.value)));
    if (&raw.version, &real) != (&content.version, &simulated) {
        return Ok(Some(format!(
            "etcd holds {}: {}, in the simulator {}: {}",
            raw.version,
            real.words(),
            content.version,
            simulated.words()
        )));
    }
    for (version, real) in &outcome.views {
        let view = release.view(&content, version).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
        let (real, simulated) = (known(real), known(&Places::of(&view)));
        if real != simulated {
            return Ok(Some(format!(
                "{version} shows {}, in the simulator {}",
                real.words(),
                simulated.words()
            )));
        }
    }
    let owners = entries(data, &outcome.after)?;
    Ok((owners != content.owners)
        .then(|| format!("owners {owners:?}, in the simulator {:?}", content.owners)))
}

/// The places that are compared.
fn known(places: &Places) -> Places {
    Places(
        places
            .0
            .intersection(&BTreeSet::from([Place::Spec, Place::Nested, Place::Status]))
            .copied()
            .collect(),
    )
}

/// Owners by the fields that are compared.
fn entries(data: &Data, entries: &[matrix::Entry]) -> Result<Vec<Entry>> {
    let mut owners = Vec::new();
    for entry in entries {
        let mut entry = Entry::read(&data.parts.entry(entry).context("an owner")?);
        let fields: Fields = entry.fields.into_iter().filter(|field| is_known(field)).collect();
        entry.fields = fields;
        if !entry.fields.is_empty() {
            owners.push(entry);
        }
    }
    owners.sort();
    Ok(owners)
}

fn is_known(field: &str) -> bool {
    let mut names = field.split('.').skip(1);
    match names.next() {
        Some("spec") => names.next().is_none_or(|name| KNOWN.contains(&name)),
        part => part == Some("status"),
    }
}
