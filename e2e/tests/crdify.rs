//! What `etch lint --old` finds between real CRDs, compared with what crdify found: each of its checks has a
//! rule of Etch's that finds the same, and what only one of them finds has a reason. `just crdify` records
//! what crdify finds.

#![expect(clippy::print_stdout, reason = "how many differences there are for each reason is worth a line")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::corpus::{load, pairs};
use e2e::paths::is_below;
use etch_lint::{Finding, compatibility};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;

/// The failed checks of a pair.
#[derive(Deserialize)]
struct Pair {
    pair: String,
    entries: Vec<Entry>,
}

/// A failed check of crdify's.
#[derive(Debug, Deserialize)]
struct Entry {
    among: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    path: String,
    check: String,
    text: String,
}

/// The checks that crdify has, and the rules that find the same.
const CHECKS: [(&str, &[&str]); 16] = [
    ("scope", &["ETCH312"]),
    ("existingFieldRemoval", &["ETCH310"]),
    ("storedVersionRemoval", &["ETCH311"]),
    ("default", &["ETCH323", "ETCH324"]),
    ("enum", &["ETCH303", "ETCH319", "ETCH325"]),
    ("maximum", &["ETCH304"]),
    ("maxItems", &["ETCH305"]),
    ("maxLength", &["ETCH305"]),
    ("maxProperties", &["ETCH305"]),
    ("minimum", &["ETCH304"]),
    ("minItems", &["ETCH305"]),
    ("minLength", &["ETCH305"]),
    ("minProperties", &["ETCH305"]),
    ("required", &["ETCH302"]),
    ("type", &["ETCH301", "ETCH318"]),
    // Whatever crdify has no check for.
    (
        "unhandled",
        &[
            "ETCH301", "ETCH304", "ETCH305", "ETCH306", "ETCH307", "ETCH308", "ETCH309", "ETCH310",
            "ETCH313", "ETCH314", "ETCH318", "ETCH320", "ETCH321", "ETCH322", "ETCH325", "ETCH327",
        ],
    ),
];

/// Why crdify finds something that Etch does not.
const REASONS: [(&str, &str); 9] = [
    ("below", "the field is gone with one above it, which is the finding"),
    ("clauses", "crdify compares the last clause of allOf, anyOf, oneOf or not in place of the field"),
    ("default", "the field is required and has a default, or every object has it"),
    (
        "harmless",
        "the change refuses nothing: a message, a title, an order, a list type that is the default, a format \
         that is not checked",
    ),
    ("before", "the two versions differed in it before the upgrade, too"),
    ("wider", "the new pattern matches all texts that the old one does, and others"),
    ("unused", "the version is neither served nor stored any more"),
    ("webhook", "a webhook converts between the versions"),
    (
        "defaults",
        "versions with other defaults are what ETCH009 finds in one CRD; widened types refuse nothing",
    ),
];

fn recorded() -> Result<Vec<Pair>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/crdify/answers.jsonl.gz");
    let file = BufReader::new(File::open(&path).context(path.display().to_string())?);
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

#[test]
fn what_crdify_finds_etch_finds_or_there_is_a_reason() -> Result<()> {
    let recorded = recorded()?;
    let folders = pairs()?;
    let names = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(
        recorded.iter().map(|pair| &pair.pair).eq(folders.iter().map(names).collect::<Vec<_>>().iter()),
        "the corpus has changed: `just crdify`"
    );
    let (mut same, mut apart, mut open) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (Pair { pair, entries }, folder) in recorded.iter().zip(&folders) {
        let (old, new) = (load(folder, "old.yaml")?, load(folder, "new.yaml")?);
        let findings = compatibility(&old.clone().into(), &new.clone().into());
        for entry in entries {
            if is_found(entry, &findings) {
                same += 1;
                seen.insert(entry.check.clone());
            } else if let Some(reason) = reason(entry, &findings, &old, &new) {
                *apart.entry(reason).or_default() += 1;
            } else {
                open.push(format!("{pair}: {entry:?}"));
            }
        }
        open.extend(
            only_etch(entries, &findings, &old, &new)
                .into_iter()
                .map(|text| format!("{pair}: only Etch: {text}")),
        );
    }
    println!("{same} are the same");
    for (key, why) in REASONS {
        println!("{}: {why}", apart.get(key).unwrap_or(&0));
    }
    ensure!(open.is_empty(), "{} without a reason:\n{}", open.len(), open.join("\n"));
    for check in [
        "default",
        "enum",
        "existingFieldRemoval",
        "maxItems",
        "maxLength",
        "maximum",
        "minimum",
        "required",
        "type",
        "unhandled",
    ] {
        ensure!(seen.contains(check), "{check} is never the same");
    }
    ensure!(apart.keys().all(|reason| REASONS.iter().any(|(key, _)| key == reason)), "{apart:?}");
    Ok(())
}

/// The path as Etch writes it, with `[]` for values of maps too, which crdify does not distinguish from
/// items.
fn path(crdify: &str) -> String {
    crdify.trim_start_matches('^').replace("[*]", "[]")
}

fn plain(finding: &Finding) -> String {
    let text = finding.path.to_string().replace("{}", "[]").replace('"', "");
    if text == "." { String::new() } else { text }
}

fn rules(check: &str) -> &'static [&'static str] {
    CHECKS.iter().find(|(name, _)| *name == check).map_or(&[], |(_, rules)| rules)
}

/// The place of an entry: its version and path.
fn place(entry: &Entry) -> (String, String) {
    match entry.text.strip_prefix("removed field : ") {
        Some(removed) => {
            let (version, below) = removed.split_once('.').unwrap_or((removed, ""));
            (version.to_owned(), path(below))
        }
        None => (entry.version.clone(), path(&entry.path)),
    }
}

fn is_found(entry: &Entry, findings: &[Finding]) -> bool {
    let (version, at) = place(entry);
    if entry.among == "served" {
        let (from, to) = version.split_once(" -> ").unwrap_or_default();
        return findings.iter().any(|finding| {
            let is_pair = [(from, to), (to, from)].iter().any(|(from, to)| {
                finding.version == *to
                    && finding.message.starts_with(&format!("an object written at {from}: "))
            });
            finding.rule.code == "ETCH317" && is_pair && touches(finding, entry, &at)
        });
    }
    findings.iter().any(|finding| {
        rules(&entry.check).contains(&finding.rule.code)
            && (finding.version == version || version.is_empty())
            && touches(finding, entry, &at)
    })
}

/// Whether a finding is at the place of an entry: a field that is required is below it, a field that is gone
/// at or above it.
fn touches(finding: &Finding, entry: &Entry, at: &str) -> bool {
    let found = plain(finding);
    found == at
        || entry.check == "required" && found.rsplit_once('.').is_some_and(|(above, _)| above == at)
        || entry.check == "existingFieldRemoval" && is_below(at, &found)
        || entry.check == "unhandled"
            && found.strip_prefix(at).is_some_and(|rest| rest == "[]" || rest.starts_with(['.', '[']))
            && finding.message.contains("in allOf")
}

/// Why Etch does not find it.
fn reason(entry: &Entry, findings: &[Finding], old: &Value, new: &Value) -> Option<&'static str> {
    let (version, at) = place(entry);
    let (from, to) = version.split_once(" -> ").unwrap_or((&version, &version));
    let earlier = if entry.among == "served" { new } else { old };
    let (before, after) = (nodes(earlier, from, &at), nodes(new, to, &at));
    let of_pair =
        |finding: &&Finding| finding.version == from || finding.version == to || finding.version.is_empty();
    let is_gone = |finding: &Finding| {
        (finding.rule.code == "ETCH310" || finding.message.ends_with("(ETCH310)"))
            && is_below(&at, &plain(finding))
    };
    let is_used = |version: &str| {
        let version = versions(new).iter().find(|other| other["name"] == version);
        version.is_some_and(|version| version["served"] == true || version["storage"] == true)
    };
    let clauses = ["allOf", "anyOf", "oneOf", "not"];
    if entry.among == "served" && new["spec"]["conversion"]["strategy"] == "Webhook" {
        Some("webhook")
    } else if !is_used(from) || !is_used(to) {
        Some("unused")
    } else if findings.iter().filter(of_pair).any(is_gone) {
        Some("below")
    } else if before.iter().chain(&after).any(|node| clauses.iter().any(|clause| !node[clause].is_null()))
        || before.len() > 1
        || after.len() > 1
    {
        Some("clauses")
    } else if entry.among == "served"
        && entry.check == "required"
        && required(new, to, &at)
            .difference(&required(new, from, &at))
            .all(|name| required(old, to, &at).contains(name) && !required(old, from, &at).contains(name))
    {
        Some("before")
    } else if entry.check == "required"
        && after.iter().all(|node| {
            let names = node["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let is_new = |name: &&str| {
                !before.iter().any(|old| {
                    old["required"].as_array().is_some_and(|old| old.contains(&Value::from(*name)))
                })
            };
            names
                .filter(is_new)
                .all(|name| name == "metadata" || !node["properties"][name]["default"].is_null())
        })
    {
        Some("default")
    } else if entry.among == "served"
        && matches!(entry.check.as_str(), "default" | "type" | "enum" | "unhandled")
    {
        Some("defaults")
    } else if entry.check == "unhandled" && same_but_for_words(before.first()?, after.first()?) {
        Some("harmless")
    } else if entry.check == "unhandled"
        && before.first()?["pattern"] != after.first()?["pattern"]
        && compatibility(&new.clone().into(), &old.clone().into())
            .iter()
            .any(|finding| finding.rule.code == "ETCH306" && plain(finding) == at)
    {
        Some("wider")
    } else {
        None
    }
}

/// The fields that a version requires at a path.
fn required(crd: &Value, version: &str, at: &str) -> BTreeSet<String> {
    let nodes = nodes(crd, version, at);
    let names = nodes.iter().flat_map(|node| node["required"].as_array().into_iter().flatten());
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// What Etch finds of what crdify has a check for, and crdify does not.
fn only_etch(entries: &[Entry], findings: &[Finding], old: &Value, new: &Value) -> Vec<String> {
    const COMPARED: [&str; 6] = ["ETCH301", "ETCH302", "ETCH303", "ETCH304", "ETCH305", "ETCH310"];
    let is_known = |finding: &Finding| {
        entries.iter().any(|entry| {
            let (version, at) = place(entry);
            version == finding.version && touches(finding, entry, &at)
        })
    };
    let has_reason = |finding: &Finding| {
        let at = plain(finding);
        // In a clause, below one, or at a field that the old schema did not declare: crdify compares none of
        // these.
        finding.message.starts_with("in ")
            || nodes(old, &finding.version, &at).is_empty()
            || nodes(old, &finding.version, &at).len() > 1
            || nodes(new, &finding.version, &at).len() > 1
            || finding.version.is_empty()
    };
    findings
        .iter()
        .filter(|finding| COMPARED.contains(&finding.rule.code) && !is_known(finding) && !has_reason(finding))
        .map(|finding| {
            format!("{} {} {}: {}", finding.rule.code, finding.version, finding.path, finding.message)
        })
        .collect()
}

fn versions(crd: &Value) -> &[Value] {
    crd["spec"]["versions"].as_array().map_or(&[], Vec::as_slice)
}

/// The nodes of a version that are at a place, those of clauses too.
fn nodes<'a>(crd: &'a Value, version: &str, at: &str) -> Vec<&'a Value> {
    let version = versions(crd).iter().find(|other| other["name"] == version);
    let mut found = Vec::new();
    if let Some(version) = version {
        collect(&version["schema"]["openAPIV3Schema"], String::new(), at, &mut found);
    }
    found
}

fn collect<'a>(node: &'a Value, here: String, at: &str, found: &mut Vec<&'a Value>) {
    if here == at {
        found.push(node);
    }
    if !is_below(at, &here) {
        return;
    }
    for (name, below) in node["properties"].as_object().into_iter().flatten() {
        collect(below, format!("{here}.{name}"), at, found);
    }
    for keyword in ["items", "additionalProperties"] {
        if node[keyword].is_object() {
            collect(&node[keyword], format!("{here}[]"), at, found);
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for clause in node[keyword].as_array().into_iter().flatten() {
            collect(clause, here.clone(), at, found);
        }
    }
    if node["not"].is_object() {
        collect(&node["not"], here, at, found);
    }
}

/// Whether two nodes differ in nothing that refuses anything; what is below them has entries of its own.
fn same_but_for_words(old: &Value, new: &Value) -> bool {
    let bare = |node: &Value| {
        let mut node = node.clone();
        let Some(fields) = node.as_object_mut() else { return node };
        for words in [
            "description",
            "title",
            "example",
            "externalDocs",
            "properties",
            "items",
            "additionalProperties",
            "default",
            "enum",
            "format",
        ] {
            fields.remove(words);
        }
        for (keyword, default) in
            [("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")]
        {
            if fields.get(keyword).is_some_and(|kind| kind == default) {
                fields.remove(keyword);
            }
        }
        for list in ["required", "x-kubernetes-list-map-keys"] {
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.sort_by_key(ToString::to_string);
            }
        }
        if let Some(Value::Array(rules)) = fields.get_mut("x-kubernetes-validations") {
            let mut texts: Vec<Value> = rules
                .iter()
                .map(|rule| {
                    rule["rule"]
                        .as_str()
                        .unwrap_or_default()
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(" ")
                        .into()
                })
                .collect();
            texts.sort_by_key(ToString::to_string);
            *rules = texts;
        }
        node
    };
    let (old, new) = (bare(old), bare(new));
    old == new
}
