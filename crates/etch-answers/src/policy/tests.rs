//! Policies from a file, and the words and documents that they come to.

use std::ops::ControlFlow;

use etch_core::api::{GROUP, Settings};
use etch_core::plan::HiddenFields;
use kube_manifests::Document;
use serde_json::{Value, json};

use super::*;

fn crd() -> Crd {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
    });
    let document = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": [version],
        },
    });
    Crd::read(&document.into()).expect("a CRD")
}

fn read(text: &str) -> Result<Known, String> {
    let mut documents: Vec<Document> = Vec::new();
    let _ = kube_manifests::read("stdin", text.into(), &mut |document| {
        documents.push(document.expect("a document"));
        ControlFlow::Continue(())
    });
    of_documents(&documents).map(Known::Read).map_err(|error| error.to_string())
}

fn policy(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: {GROUP}/v1alpha1\nkind: DefaultsPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn rules(policies: &[(&str, &str)]) -> Rules {
    let text: String = policies.iter().map(|(name, spec)| policy(name, spec)).collect();
    read(&text).expect("policies").rules(&crd(), &Labels::from([("tier".to_owned(), "gold".to_owned())]))
}

#[test]
fn each_setting_decides_as_for_the_operator() {
    for (policies, words, idle) in [
        (&[("default", "{}")][..], "default", None),
        (
            &[("default", "{objects: {namespaces: [team-a], matchLabels: {tier: gold}}}")],
            "default (objects: namespaces team-a; labels tier=gold)",
            None,
        ),
        (&[("default", "{objects: {}}")], "default", None),
        (
            &[("default", "{hiddenFields: Drop, ownership: Own}")],
            "default (ownership: Own, hiddenFields: Drop)",
            None,
        ),
        (
            &[("default", "{onChange: [{path: .spec.a, action: Follow}, {path: .spec.b, action: Keep}]}")],
            "default (onChange: Follow .spec.a)",
            None,
        ),
        (&[("b", "{}"), ("a", "{}")], "a; a governs in the tie with b, as the first by name", None),
        (
            &[("default", "{mode: Audit}")],
            "default (mode: Audit)",
            Some("DefaultsPolicy default has mode: Audit"),
        ),
        (
            &[("default", "{}"), ("gold", "{selector: {matchLabels: {tier: gold}}, mode: Ignore}")],
            "gold (mode: Ignore)",
            Some("DefaultsPolicy gold has mode: Ignore"),
        ),
        (
            &[("default", "{}"), ("other", "{selector: {groups: [other.io]}, pauseAll: true}")],
            "default; writes paused by DefaultsPolicy other (pauseAll)",
            Some(
                "DefaultsPolicy other (pauseAll) has paused writes; to end the pause, set pauseAll to false \
                 in DefaultsPolicy other",
            ),
        ),
        (
            &[("other", "{selector: {groups: [other.io]}}")],
            "none selects this CRD, so Etch ignores its objects",
            Some("no DefaultsPolicy selects this CRD"),
        ),
    ] {
        let rules = rules(policies);
        assert_eq!((rules.in_words().as_str(), rules.idle().as_deref()), (words, idle), "{policies:?}");
        assert_eq!(rules.settings().is_some_and(Settings::writes), idle.is_none());
    }
    for (policies, grant) in [
        (&[("default", "{}")][..], "etch rbac --policy default | kubectl apply -f -"),
        (
            &[("a", "{objects: {namespaces: [team-a]}}")],
            "etch rbac --policy a --service-account NAMESPACE:NAME | kubectl apply -f -",
        ),
    ] {
        assert_eq!(rules(policies).grant(""), grant);
    }
    assert_eq!(Rules::Assumed.grant(""), "etch rbac --live | kubectl apply -f -");
    assert_eq!(
        Rules::Assumed.grant(" --context=prod"),
        "etch rbac --live --context=prod | kubectl apply --context=prod -f -"
    );
    assert_eq!(rules(&[("default", "{hiddenFields: Drop}")]).terms().hidden_fields, HiddenFields::Drop);
    assert_eq!(
        rules(&[("default", "{paused: true}")]).document(),
        json!({
            "name": "default", "mode": "Persist", "ownership": "None", "hiddenFields": "Hold",
            "objects": null,
            "follow": [], "pausedBy": "DefaultsPolicy default (paused)",
        })
    );
    let none = Known::default().rules(&crd(), &Labels::new());
    assert_eq!((none.document(), none.idle()), (Value::Null, None));
}

#[test]
fn a_file_has_policies_that_can_be_read() {
    let twice = policy("a", "{}") + &policy("a", "{mode: Audit}");
    for (text, error) in [
        (policy("a", "{hiddenField: Drop}"), "stdin: spec.hiddenField: unknown field"),
        (policy("a", "{selecter: {}}"), "stdin: spec.selecter: unknown field"),
        (policy("a", "{selector: {group: [x.io]}}"), "stdin: spec.selector.group: unknown field"),
        (policy("a", "{selector: {matchLabel: {a: b}}}"), "stdin: spec.selector.matchLabel: unknown field"),
        (policy("a", "{objects: {namespace: [x]}}"), "stdin: spec.objects.namespace: unknown field"),
        (policy("a", "{canary: {objects: 1, than: Wait}}"), "stdin: spec.canary.than: unknown field"),
        (
            policy("a", "{onChange: [{path: .spec.a, action: Follow, where: x}]}"),
            "stdin: spec.onChange[0].where: unknown field",
        ),
        (policy("a", "{}") + "spek: {mode: Audit}\n", "stdin: spek: unknown field"),
        (policy("a", "[]"), "stdin: spec is missing, or no object"),
        (
            policy("a", "{mode: Dream}"),
            "stdin: spec.mode cannot be read: unknown value, expected one of `Persist`",
        ),
        (
            policy("a", "{settle: 1h 30m}"),
            "stdin: spec.settle: expected a time such as 10s, 1m30s, 1h or 1d12h",
        ),
        (policy("''", "{}"), "stdin: metadata.name is missing"),
        (
            twice,
            "stdin, document 2: DefaultsPolicy a is also in stdin, with another content; give one \
             of them",
        ),
    ] {
        let found = read(&text).expect_err("an error");
        assert!(found.starts_with(error), "{found}");
    }
    assert!(read(&policy("a", "{onChange: []}").repeat(2)).is_ok());
}

#[test]
fn one_line_where_all_are_judged_alike() {
    let lines = |all: &[(&str, &Rules)]| {
        let mut out = Vec::new();
        write_all(&mut out, all.iter().copied()).expect("memory");
        String::from_utf8(out).expect("text")
    };
    let (default, audit) = (rules(&[("default", "{}")]), rules(&[("a", "{mode: Audit}")]));
    assert_eq!(lines(&[("x", &default), ("y", &default)]), "Policy: default\n");
    assert_eq!(
        lines(&[("v", &default), ("w", &default), ("x", &default), ("y", &default), ("z", &audit)]),
        "Policy of z: a (mode: Audit)\nPolicy of v, w, x and 1 more: default\n"
    );
}
