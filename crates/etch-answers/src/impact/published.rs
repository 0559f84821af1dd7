//! What changes between two releases of an API server, by the types that they publish: as text and as JSON or
//! YAML.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use etch_core::impact::Kind;
use etch_lint::published::{Changes, DefaultChange, TypeName, short};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

use crate::{Cell, Style, Table, Tone, counted, plain};

/// How many kinds a table names that a default reaches.
const NAMED: usize = 3;

/// What changes in one API version.
#[derive(Default)]
struct Group<'c> {
    added: Vec<&'c str>,
    removed: Vec<&'c str>,
    defaults: Vec<&'c DefaultChange>,
}

/// The changes by API version, those of a group together. What no API version has of its own comes first,
/// under no name.
fn groups(changes: &Changes) -> BTreeMap<(&str, &str), Group<'_>> {
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    fn key(api_version: &str) -> (&str, &str) {
        api_version.rsplit_once('/').unwrap_or(("", api_version))
    }
    fn of(name: &TypeName) -> ((&str, &str), &str) {
        ((name.group(), name.version()), name.kind.as_str())
    }
    for (at, kind) in changes.added.iter().map(of) {
        groups.entry(at).or_default().added.push(kind);
    }
    for (at, kind) in changes.removed.iter().map(of) {
        groups.entry(at).or_default().removed.push(kind);
    }
    for change in &changes.defaults {
        groups.entry(key(&change.api_version)).or_default().defaults.push(change);
    }
    groups
}

fn name((group, version): (&str, &str)) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The sorts of changes that there are; changes that need no attention are known.
pub fn kinds(changes: &Changes) -> BTreeSet<Kind> {
    let default = |change: &DefaultChange| if change.is_minor() { Kind::Known } else { change.kind() };
    let mut kinds: BTreeSet<Kind> = changes.defaults.iter().map(default).collect();
    kinds.extend((!changes.added.is_empty()).then_some(Kind::Addition));
    kinds.extend((!changes.removed.is_empty()).then_some(Kind::Loss));
    kinds
}

/// Everything that is reported, as JSON.
pub fn document(changes: &Changes) -> Value {
    let words: Vec<&str> = kinds(changes).iter().map(|kind| kind.as_str()).collect();
    let groups: Vec<Value> =
        groups(changes).into_iter().map(|(at, found)| group(&name(at), &found)).collect();
    json!({ "kinds": words, "apiVersions": groups })
}

fn group(name: &str, Group { added, removed, defaults }: &Group<'_>) -> Value {
    let of = |kind: Kind, value: &dyn Fn(&mut Value, &DefaultChange)| -> Vec<Value> {
        let changes = defaults.iter().filter(|change| change.kind() == kind);
        let entry = |change: &&DefaultChange| {
            let mut entry = json!({
                "definition": change.definition, "path": change.path.to_string(),
                "in": change.kinds.iter().map(full).collect::<Vec<_>>(),
                "nullsOnly": change.is_for_nulls(), "minor": change.is_minor(),
            });
            value(&mut entry, change);
            entry
        };
        changes.map(entry).collect()
    };
    let old = |entry: &mut Value, change: &DefaultChange| entry["old"] = json!(change.old);
    let both = |entry: &mut Value, change: &DefaultChange| {
        (entry["old"], entry["new"]) = (json!(change.old), json!(change.new));
    };
    json!({
        "apiVersion": name,
        "kindsAdded": added,
        "kindsRemoved": removed,
        "defaultsAdded": of(Kind::Addition, &|entry, change| entry["value"] = json!(change.new)),
        "defaultsChanged": of(Kind::Change, &both),
        "defaultsRemoved": of(Kind::Loss, &old),
    })
}

fn full(of: &TypeName) -> Value {
    json!({ "apiVersion": of.api_version, "kind": of.kind })
}

/// Everything that is reported, for people: a section for each API version in which something changes.
///
/// # Errors
/// What the writer answers.
pub fn table(out: &mut dyn Write, style: &Style, changes: &Changes) -> io::Result<()> {
    for (at, Group { added, removed, defaults }) in groups(changes) {
        let (minor, shown): (Vec<&DefaultChange>, Vec<_>) =
            defaults.into_iter().partition(|change| change.is_minor());
        if shown.is_empty() && added.is_empty() && removed.is_empty() && !minor.is_empty() {
            continue;
        }
        let name = name(at);
        let name = if name.is_empty() { "Several API versions" } else { &name };
        writeln!(out, "{}", style.paint(Tone::Strong, plain(name)))?;
        for (what, kinds) in [("Kinds added", added), ("Kinds removed", removed)] {
            if !kinds.is_empty() {
                writeln!(out, "{what}: {}", plain(&kinds.join(", ")))?;
            }
        }
        let mut table = Table::new(["SCHEMA", "PATH", "OLD", "NEW", "IN"]);
        for change in shown {
            let (what, tone) = word(change.kind());
            table.row([
                Cell::new(what, tone),
                place(change).into(),
                value(change.old.as_ref()),
                value(change.new.as_ref()),
                kinds_in_words(&change.kinds, at).into(),
            ]);
        }
        table.write(out, style)?;
        writeln!(out)?;
    }
    let minor = changes.defaults.iter().filter(|change| change.is_minor()).count() as u64;
    match (changes.is_none(), minor) {
        (true, _) => writeln!(out, "Nothing changes."),
        (_, 0) => Ok(()),
        (_, minor) => writeln!(
            out,
            "Not shown: {} with a zero value that {} nothing but a null, or {} with a field; -o json has \
             them.",
            counted(minor, "default"),
            if minor == 1 { "replaces" } else { "replace" },
            if minor == 1 { "comes or goes" } else { "come or go" },
        ),
    }
}

fn word(kind: Kind) -> (&'static str, Tone) {
    match kind {
        Kind::Change => ("default changed", Tone::Warning),
        Kind::Loss => ("default removed", Tone::Warning),
        _ => ("default added", Tone::Plain),
    }
}

/// `ServicePort.protocol`
fn place(change: &DefaultChange) -> String {
    let definition = short(&change.definition);
    if change.path.is_root() { definition.to_owned() } else { format!("{definition}{}", change.path) }
}

fn value(value: Option<&Json>) -> Cell {
    value.map(|value| Cell::new(value.to_string(), Tone::Plain)).unwrap_or_default()
}

/// The kinds that a default reaches, those of other API versions with theirs.
fn kinds_in_words(kinds: &[TypeName], (group, version): (&str, &str)) -> String {
    let (home, others): (Vec<_>, Vec<_>) =
        kinds.iter().partition(|kind| (kind.group(), kind.version()) == (group, version));
    let home = home.iter().map(|kind| kind.kind.clone());
    let named = home.chain(others.iter().map(|kind| kind.to_string()));
    let mut words: Vec<String> = named.take(NAMED).collect();
    if let Some(more) = kinds.len().checked_sub(NAMED).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}
