use std::time::Duration;

use etch_core::api::Canary;
use etch_core::crd::Crd;
use etch_core::impact::{Tally, Upgrade as Impact, compare_crds};
use etch_core::object::Object;
use etch_core::plan::{HiddenFields, Record, Terms};
use etch_core::report::former_defaults::of_upgrade;
use etch_core::selection::ObjectSelector;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use serde::Deserialize;
use serde_json::{Value, json};

use super::step::first;
use super::*;
use crate::{compatibility, refusals};

/// A case of `cases.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    old: Option<State>,
    new: State,
    /// The specs of the cluster's objects, as it shows them; `None` if they are not read. One with `ignored`
    /// has the annotation, and one with `owner` a field owner at that version. Of one with `unproved` nothing
    /// shows where it is stored; all others are at the storage version.
    #[serde(default)]
    objects: Option<Vec<Value>>,
    #[serde(default)]
    policy: GivenPolicy,
    #[serde(default, rename = "dryRun")]
    dry_run: GivenAnswer,
    steps: Vec<String>,
    #[serde(default)]
    unknown: Vec<String>,
}

/// A CRD, in short.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The versions: the last one is the storage version, and all are served.
    versions: Vec<(String, Value)>,
    /// All but this one.
    #[serde(default)]
    unserved: Option<String>,
    #[serde(default)]
    stored: Option<Vec<String>>,
    #[serde(default)]
    conversion: Option<Value>,
    #[serde(default)]
    labels: Value,
    /// Whether it is from a file, and not as a server returned it.
    #[serde(default)]
    written: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenPolicy {
    #[serde(default)]
    writes: bool,
    #[serde(default)]
    drops: bool,
    #[serde(default)]
    trims: bool,
    #[serde(default)]
    repairs: bool,
    #[serde(default)]
    selects: Option<ObjectSelector>,
    #[serde(default)]
    follow: Vec<String>,
    #[serde(default)]
    idle: Option<String>,
    /// In hours.
    #[serde(default)]
    settle: u64,
    #[serde(default)]
    canary: Option<Canary>,
}

#[derive(Default, Deserialize)]
enum GivenAnswer {
    /// Left out: it is not what the case is about, and the cluster accepts the CRD.
    #[default]
    Accepts,
    NotAsked,
    Same,
    Conflicts,
    Refuses,
    /// Etch's guard.
    Guards {
        conflicts: bool,
    },
    Fails,
}

fn document(state: &State) -> Json {
    let last = state.versions.len() - 1;
    let version = |(index, (name, spec)): (usize, &(String, Value))| {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let served = state.unserved.as_ref() != Some(name);
        json!({
            "name": name, "served": served, "storage": index == last, "schema": { "openAPIV3Schema": schema },
        })
    };
    let versions: Vec<Value> = state.versions.iter().enumerate().map(version).collect();
    let names = json!({ "plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList" });
    let mut document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com", "uid": "u" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": names, "versions": versions },
    });
    if let Some(conversion) = &state.conversion {
        document["spec"]["conversion"] = conversion.clone();
    }
    document["metadata"]["labels"] = state.labels.clone();
    if state.written {
        document["metadata"]["uid"] = Value::Null;
    }
    if let Some(stored) = &state.stored {
        document["status"] = json!({ "storedVersions": stored });
    }
    document.into()
}

fn planned(case: &Case) -> UpgradePlan {
    let (old, new) = (case.old.as_ref().map(document), document(&case.new));
    let read = |document: &Json| Crd::read(document).expect("a CRD");
    let (old_crd, new_crd) = (old.as_ref().map(read), read(&new));
    let schemas = compare_crds(old_crd.as_ref(), &new_crd);
    let mut terms = Terms::default();
    if case.policy.drops {
        terms.hidden_fields = HiddenFields::Drop;
    }
    (terms.moves, terms.repairs) = (case.policy.trims, case.policy.repairs);
    terms.selection = case.policy.selects.clone().into();
    let tally = case.objects.as_ref().zip(old_crd.as_ref()).map(|(objects, old)| {
        let former = of_upgrade(old, &new_crd);
        let impact = Impact::new(old, &new_crd).under(terms.clone(), Vec::new(), former, case.policy.writes);
        let mut tally = Tally::new(terms.clone());
        for (index, given) in objects.iter().enumerate() {
            let mut metadata = json!({ "name": format!("o{index}"), "uid": format!("u{index}") });
            let mut spec = given.clone();
            let mut marker = |name: &str| spec.as_object_mut().and_then(|spec| spec.remove(name));
            if marker("ignored").is_some() {
                metadata["annotations"] = json!({ "etch-operator.io/ignore": "true" });
            }
            if let Some(version) = marker("owner") {
                metadata["managedFields"] = json!([{
                    "manager": "user", "operation": "Apply", "apiVersion": version,
                }]);
            }
            let record = Record { all_at_storage_version: marker("unproved").is_none(), ..Record::default() };
            let object = json!({
                "apiVersion": old.api_version(), "kind": "Thing", "metadata": metadata, "spec": spec,
            });
            let object = Object::from(object);
            let (mut effect, _) = impact.on_record(&object, &record);
            tally.add(&mut effect, Some((&object, old, &record)));
        }
        tally
    });
    let follow: Vec<Path> = case.policy.follow.iter().map(|path| path.parse().expect("a path")).collect();
    let words = Words {
        etch: "etch".to_owned(),
        new: "-f new.yaml".to_owned(),
        apply: Some("-f new.yaml".to_owned()),
        lint: "etch lint --old old.yaml new.yaml".to_owned(),
        old: " --old old.yaml".to_owned(),
        ..Words::default()
    };
    let dry_run = match case.dry_run {
        GivenAnswer::Accepts => DryRun::Accepted { conflicts: false },
        GivenAnswer::NotAsked => DryRun::NotAsked,
        GivenAnswer::Same => DryRun::SameAsInstalled,
        GivenAnswer::Conflicts => DryRun::Accepted { conflicts: true },
        GivenAnswer::Refuses => DryRun::Refused("403 by webhook w".to_owned()),
        GivenAnswer::Guards { conflicts } => DryRun::Guarded {
            refusal: "403 Forbidden by webhook g".to_owned(),
            digest: "0123abcd".to_owned(),
            conflicts,
        },
        GivenAnswer::Fails => DryRun::Failed("403 Forbidden".to_owned()),
    };
    UpgradePlan::new(&Upgrade {
        old: old.as_ref().zip(old_crd.as_ref()),
        new: (&new, &new_crd),
        refusals: &refusals(&new, old.as_ref(), &Release::ALL),
        dry_run: &dry_run,
        incompatible: &old.as_ref().map(|old| compatibility(old, &new)).unwrap_or_default(),
        schemas: &schemas,
        objects: tally.as_ref(),
        policy: Policy {
            name: case.policy.writes.then_some("default"),
            writes: case.policy.writes,
            idle: case.policy.idle.clone(),
            terms,
            follow: &follow,
            settle: Duration::from_hours(case.policy.settle),
            canary: case.policy.canary,
        },
        words: &words,
    })
}

fn shown(Step { kind, phase, what, why, command }: &Step) -> String {
    let why = if why.is_empty() { String::new() } else { format!(" [{}]", why.join("; ")) };
    let command = command.as_ref().map(|command| format!(" $ {command}")).unwrap_or_default();
    format!("{} {}: {what}{why}{command}", phase.as_str(), kind.as_str())
}

#[test]
fn each_case_has_its_steps() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("cases.yaml")).expect("cases");
    let mut seen = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let plan = planned(case);
        let steps: Vec<String> = plan.steps.iter().map(shown).collect();
        if steps != case.steps {
            wrong.push(format!("{}:\n  {}", case.name, steps.join("\n  ")));
        }
        if plan.unknown != case.unknown {
            wrong.push(format!("{}, not known:\n  {}", case.name, plan.unknown.join("\n  ")));
        }
        seen.extend(plan.steps.iter().map(|step| step.kind));
        // Steps are pasted one after the other, with CRDs in files of their names or in the folder where one
        // is.
        let commands = plan.steps.iter().filter_map(|step| step.command.as_deref());
        for (_, file) in commands.filter_map(|command| command.split_once(" >")) {
            let is_manifest = [".json", ".yaml", ".yml"].iter().any(|ending| file.ends_with(ending));
            assert!(!is_manifest, "{}: {file} may be what is applied next", case.name);
        }
        assert!(plan.steps.is_sorted_by_key(|step| step.phase), "{}", case.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for kind in [
        StepKind::Fix,
        StepKind::Review,
        StepKind::Repair,
        StepKind::Unignore,
        StepKind::Persist,
        StepKind::Save,
        StepKind::Hold,
        StepKind::Move,
        StepKind::Trim,
        StepKind::Webhook,
        StepKind::Apply,
        StepKind::Store,
    ] {
        assert!(seen.contains(&kind), "no case has a step {}", kind.as_str());
    }
}

#[test]
fn a_step_lists_a_few_reasons_and_counts_the_rest() {
    let reasons = |count: usize| first((0..count).map(|number| number.to_string()));
    assert_eq!(reasons(2), ["0", "1"]);
    assert_eq!(reasons(6).len(), 6, "a line that counts one reason has room for it");
    assert_eq!(reasons(9)[4..], ["4", "and 4 more"]);
}

#[test]
fn no_name_runs_anything_in_a_shell() {
    let service = json!({ "namespace": "a;b", "name": "$(c)" });
    let conversion = json!({ "strategy": "Webhook", "webhook": { "clientConfig": { "service": service } } });
    let state = |name: &str, conversion| State {
        versions: vec![(name.to_owned(), json!({ "type": "object" }))],
        unserved: None,
        stored: Some(vec!["it's".to_owned(), name.to_owned()]),
        conversion,
        labels: Value::Null,
        written: false,
    };
    let case = Case {
        name: String::new(),
        old: Some(state("v1", None)),
        new: State {
            versions: vec![("it's".to_owned(), json!({})), ("v1".to_owned(), json!({}))],
            ..state("v1", Some(conversion))
        },
        objects: None,
        policy: GivenPolicy::default(),
        dry_run: GivenAnswer::Accepts,
        steps: Vec::new(),
        unknown: Vec::new(),
    };
    let plan = planned(&case);
    let commands: Vec<&str> = plan.steps.iter().filter_map(|step| step.command.as_deref()).collect();
    let all = commands.join("\n");
    assert!(all.contains("--namespace 'a;b' --selector 'kubernetes.io/service-name=$(c)'"), "{all}");
    assert!(all.contains(r#""value":["it'\''s","v1"]"#), "{all}");
}
