use super::*;
use crate::applied::{altered, is_applied, unguarded, webhooks, with_injected};
use crate::path_key::{KEY_BYTES, PathKey, keys_in};
use kube_validation_rules::{Expression, Variables, Wanted};

fn declaration(more: Value) -> Declaration {
    let mut declaration = json!({
        "targets": [
            { "group": "example.com", "version": "v1", "resource": "machines", "path": ".spec.value" },
            {
                "group": "etch-operator.io", "version": "v1alpha1", "resource": "defaultspolicies",
                "path": ".spec",
            },
        ],
        "defaults": [{ "path": ".zone", "value": "'a'" }],
    });
    declaration.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    serde_json::from_value(declaration).expect("a declaration")
}

fn keys() -> KeyRing {
    KeyRing::next([None, None], jiff::Timestamp::UNIX_EPOCH, || PathKey::new([7; KEY_BYTES]))
}

fn keyed(path: &str) -> String {
    format!("/{}{path}", "07".repeat(32))
}

fn endpoint(inject: Injection) -> Endpoint {
    Endpoint { namespace: "etch-system".to_owned(), url: None, inject }
}

#[test]
fn a_schema_is_one_webhook_of_each_kind() {
    let one = declaration(json!({}));
    let [mutating, validating] =
        configurations([("one", &one)], &[], &endpoint(Injection::None), Some(b"PEM"), &keys());
    let webhook = &mutating["webhooks"][0];
    assert_eq!(mutating["webhooks"].as_array().map(Vec::len), Some(1));
    assert_eq!(webhook["name"], "one.etch-operator.io");
    assert_eq!(
        webhook["clientConfig"],
        json!({
            "caBundle": "UEVN",
            "service": {
                "namespace": "etch-system", "name": "etch-admission", "path": keyed("/mutate/one"),
                "port": 443,
            },
        })
    );
    assert_eq!(
        webhook["rules"],
        json!([{ "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["machines"],
                 "operations": ["CREATE"], "scope": "*" }])
    );
    assert_eq!((&webhook["failurePolicy"], &webhook["sideEffects"]), (&json!("Ignore"), &json!("None")));
    let values = &webhook["namespaceSelector"]["matchExpressions"][0]["values"];
    assert_eq!(*values, json!(["kube-system", "etch-system"]));
    assert_eq!(validating["webhooks"][0]["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
    assert_eq!(validating["webhooks"][0]["clientConfig"]["service"]["path"], keyed("/validate/one"));
}

#[test]
fn a_schema_that_can_set_nothing_has_no_mutating_webhook() {
    let of = |field: &str| {
        json!({
            "openAPIV3Schema": { "type": "object", "properties": { "a": { "type": "string", field: "a" } } },
        })
    };
    for (more, mutating) in [
        (json!({ "defaults": [], "rules": [{ "rule": "true" }], "schema": of("pattern") }), 0),
        (json!({ "defaults": [], "schema": of("default") }), 1),
        (json!({ "defaults": [], "schema": of("pattern"), "unknownFields": "Prune" }), 1),
        (json!({}), 1),
    ] {
        let one = declaration(more.clone());
        let all = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
        let webhooks = all.map(|configuration| configuration["webhooks"].as_array().map(Vec::len));
        assert_eq!(webhooks, [Some(mutating), Some(1)], "{more}");
    }
}

#[test]
fn mutating_webhooks_of_a_resource_share_the_time_of_a_request() {
    let (one, alone) = (
        declaration(json!({})),
        declaration(json!({ "targets": [
        { "group": "example.com", "version": "v1", "resource": "things", "path": ".spec" },
    ] })),
    );
    let rules_only = declaration(json!({ "defaults": [], "rules": [{ "rule": "true" }] }));
    for (schemas, expected) in [(1, 3), (5, 3), (6, 2), (7, 2), (8, 1), (15, 1), (30, 1)] {
        let names: Vec<String> = (0..schemas).map(|index| format!("s{index:02}")).collect();
        let all = names.iter().map(|name| (name.as_str(), &one));
        let all = all.chain([("alone", &alone), ("rules-only", &rules_only)]);
        let [mutating, validating] = configurations(all, &[], &endpoint(Injection::None), None, &keys());
        let timeouts = |configuration: &Value| -> Vec<u64> {
            webhooks(configuration).filter_map(|webhook| webhook["timeoutSeconds"].as_u64()).collect()
        };
        let (first, others) = (timeouts(&mutating)[0], timeouts(&mutating)[1..].to_vec());
        assert_eq!((first, others), (3, vec![expected; schemas]), "{schemas}");
        assert_eq!(timeouts(&validating), vec![3; schemas + 2], "these are called at once");
    }
}

#[test]
fn settings_of_a_schema_are_its_webhooks() {
    let one = declaration(json!({
        "defaultOn": ["CREATE", "UPDATE"],
        "webhooks": {
            "validationFailurePolicy": "Fail",
            "matchConditions": [{ "name": "aws", "expression": "true" }],
            "namespaceSelector": { "matchLabels": { "a": "b" } },
        },
    }));
    let mut at = endpoint(Injection::CertManager);
    at.url = Some("https://127.0.0.1:1/".to_owned());
    let [mutating, validating] = configurations([("one", &one)], &[], &at, Some(b"PEM"), &keys());
    assert_eq!(
        mutating["metadata"]["annotations"],
        json!({
            "admissions.enforcer/disabled": "true",
            "cert-manager.io/inject-ca-from": "etch-system/etch-admission",
            KEYS: keys().annotation(),
        })
    );
    assert_eq!(keys_in(&mutating), keys_in(&validating));
    let (mutating, validating) = (&mutating["webhooks"][0], &validating["webhooks"][0]);
    assert_eq!(
        mutating["clientConfig"],
        json!({ "url": format!("https://127.0.0.1:1{}", keyed("/mutate/one")) })
    );
    assert_eq!(
        (&mutating["failurePolicy"], &validating["failurePolicy"]),
        (&json!("Ignore"), &json!("Fail"))
    );
    assert_eq!(mutating["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
    assert_eq!(validating["matchConditions"], json!([{ "name": "aws", "expression": "true" }]));
    assert_eq!(validating["namespaceSelector"]["matchLabels"], json!({ "a": "b" }));
    assert_eq!(validating["namespaceSelector"]["matchExpressions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_schema_of_crds_is_not_asked_about_those_of_etch() {
    let target = json!({ "group": "apiextensions.k8s.io", "version": "v1",
                         "resource": "customresourcedefinitions", "path": ".spec" });
    let one = declaration(json!({
        "targets": [target],
        "webhooks": { "matchConditions": [{ "name": "aws", "expression": "true" }] },
    }));
    let of = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
    for configuration in of {
        let conditions = &configuration["webhooks"][0]["matchConditions"];
        let names: Vec<_> = conditions.as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        assert_eq!(names, ["aws", "is-not-of-etch"]);
    }
}

#[test]
fn the_guard_is_asked_where_a_crd_has_a_new_generation() {
    let [_, configuration] = configurations([], &[GUARD], &endpoint(Injection::None), None, &keys());
    let condition = &configuration["webhooks"][0]["matchConditions"][0]["expression"];
    let variables = Variables::new().dynamic(&["request", "object", "oldObject"]);
    let condition = condition.as_str().expect("an expression");
    let condition = Expression::compile(condition, &variables, Wanted::Bool).expect("an expression");
    let crd = |generation: Value| json!({ "metadata": { "name": "a", "generation": generation } });
    let bare = json!({ "metadata": { "name": "a" } });
    for (old, new, expected) in [
        (&crd(json!(1)), &crd(json!(1)), false),
        (&crd(json!(1)), &crd(json!(2)), true),
        (&bare, &crd(json!(1)), true),
        (&bare, &bare, false),
    ] {
        let request = json!({ "operation": "UPDATE" });
        let (is_asked, _) = condition.holds(&variables, &[Some(&request), Some(new), Some(old)]);
        assert_eq!(is_asked, Ok(expected), "{old} {new}");
    }
}

#[test]
fn upgrades_of_crds_and_migrations_are_one_webhook_more_each() {
    let one = declaration(json!({}));
    let at = endpoint(Injection::None);
    let [mutating, validating] = configurations([("one", &one)], &GUARDS, &at, Some(b"PEM"), &keys());
    assert_eq!(mutating["webhooks"].as_array().map(Vec::len), Some(1));
    let guard = &validating["webhooks"][1];
    assert_eq!(guard["name"], GUARD);
    assert_eq!(guard["clientConfig"]["service"]["path"], keyed("/guard"));
    assert_eq!(guard["clientConfig"]["caBundle"], "UEVN");
    assert_eq!((&guard["failurePolicy"], &guard["timeoutSeconds"]), (&json!("Ignore"), &json!(3)));
    assert_eq!(guard["rules"][0]["resources"], json!(["customresourcedefinitions"]), "no subresource");
    assert_eq!(guard["rules"][0]["operations"], json!(["UPDATE", "DELETE"]));
    let migrations = &validating["webhooks"][2];
    assert_eq!(migrations["name"], MIGRATION_GUARD);
    assert_eq!(migrations["rules"][0]["resources"], json!(["storageversionmigrations"]));
    assert_eq!([GUARD, MIGRATION_GUARD].map(schema_of), [None, None]);
    let [_, alone] = configurations([], &GUARDS, &at, None, &keys());
    assert_eq!(alone["webhooks"].as_array().map(Vec::len), Some(2));
    let [_, one_of_them] = configurations([], &[MIGRATION_GUARD], &at, None, &keys());
    assert_eq!(one_of_them["webhooks"].as_array().map(Vec::len), Some(1));
    assert_eq!(one_of_them["webhooks"][0]["name"], MIGRATION_GUARD);
}

#[test]
fn what_would_keep_api_servers_from_asking_is_neither_left_over_nor_added() {
    let narrow = |webhooks: Value| {
        let one = declaration(json!({ "webhooks": webhooks }));
        configurations([("one", &one)], &GUARDS, &endpoint(Injection::None), Some(b"PEM"), &keys())
    };
    let [_, body] = narrow(json!({}));
    for webhooks in [
        json!({ "matchConditions": [{ "name": "trial", "expression": "false" }] }),
        json!({ "namespaceSelector": { "matchLabels": { "trial": "yes" } } }),
        json!({ "namespaceSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists" }] } }),
    ] {
        let [_, left_over] = narrow(webhooks.clone());
        assert!(!is_applied(&body, &left_over), "{webhooks}");
        assert!(is_applied(&left_over, &left_over) && !is_applied(&left_over, &body), "{webhooks}");
    }
    for (field, added) in [
        ("matchConditions", json!([{ "name": "never", "expression": "false" }])),
        ("objectSelector", json!({ "matchLabels": { "a": "b" } })),
        ("namespaceSelector", json!({ "matchLabels": { "a": "b" } })),
        ("clientConfig", json!({ "caBundle": "UEVO" })),
    ] {
        for index in 0..3 {
            let mut configuration = body.clone();
            let there = configuration["webhooks"][index][field].take();
            configuration["webhooks"][index][field] = match (there, added.clone()) {
                (Value::Object(there), Value::Object(added)) => there.into_iter().chain(added).collect(),
                (_, added) => added,
            };
            let name = body["webhooks"][index]["name"].as_str().expect("a name").to_owned();
            assert_eq!(altered(&body, &configuration), [(name, field.to_owned())].into());
            assert!(!is_applied(&body, &configuration));
        }
    }
}

#[test]
fn what_the_server_fills_in_or_leaves_out_is_no_difference() {
    let one = declaration(json!({}));
    let [_, body] = configurations([("one", &one)], &GUARDS, &endpoint(Injection::ServiceCa), None, &keys());
    let mut configuration = body.clone();
    for webhook in configuration["webhooks"].as_array_mut().expect("webhooks") {
        let webhook = webhook.as_object_mut().expect("a webhook");
        webhook.retain(|_, value| *value != json!([]));
        webhook.insert("ofLaterServers".to_owned(), json!("Default"));
        webhook["clientConfig"][CA_BUNDLE] = json!("UEVN");
    }
    assert!(is_applied(&body, &configuration));
    let put = with_injected(&body, &configuration);
    assert_eq!(put[0]["clientConfig"][CA_BUNDLE], "UEVN");
    assert_eq!(put[0].get("ofLaterServers"), None);
}

#[test]
fn no_platform_adds_to_the_selectors_also_after_an_upgrade() {
    let one = declaration(json!({}));
    for inject in [Injection::None, Injection::CertManager, Injection::ServiceCa] {
        for body in configurations([("one", &one)], &GUARDS, &endpoint(inject), None, &keys()) {
            assert_eq!(body["metadata"]["annotations"]["admissions.enforcer/disabled"], "true");
            let mut of_an_older_etch = body.clone();
            let annotations = of_an_older_etch["metadata"]["annotations"].as_object_mut().expect("a map");
            annotations.remove("admissions.enforcer/disabled");
            assert!(!is_applied(&body, &of_an_older_etch), "it is added to what is there");
        }
    }
}

#[test]
fn what_others_add_is_theirs_and_what_is_left_over_goes() {
    let one = declaration(json!({}));
    let [bare, _] = configurations([("one", &one)], &[], &endpoint(Injection::None), None, &keys());
    let configuration = bare.clone();
    assert!(is_applied(&bare, &configuration));
    let [body, _] = configurations([("one", &one)], &[], &endpoint(Injection::ServiceCa), None, &keys());
    assert!(!is_applied(&body, &configuration));
    let mut configuration = body.clone();
    configuration["webhooks"][0]["clientConfig"]["caBundle"] = json!("UEVN");
    configuration["metadata"]["uid"] = json!("1");
    assert!(is_applied(&body, &configuration));
    configuration["webhooks"][0]["timeoutSeconds"] = json!(10);
    assert!(!is_applied(&body, &configuration));
    let [none, _] = configurations([], &[], &endpoint(Injection::ServiceCa), None, &keys());
    assert!(!is_applied(&none, &configuration));
    configuration.as_object_mut().expect("a map").remove("webhooks");
    assert!(is_applied(&none, &configuration));
}

#[test]
fn why_nobody_guards_is_read_off_the_configuration() {
    let of = |guards: &[&str], inject, authority| {
        let [_, configuration] = configurations([], guards, &endpoint(inject), authority, &keys());
        unguarded(Some(&configuration)).unwrap_or_default()
    };
    assert_eq!(of(&GUARDS, Injection::None, Some(&b"PEM"[..])), "");
    for inject in [Injection::None, Injection::CertManager, Injection::ServiceCa] {
        let why = of(&GUARDS, inject, None);
        assert!(why.starts_with(&format!("the webhook {GUARD} has no caBundle, so")), "{why}");
    }
    let url = Some("https://etch.example.com".to_owned());
    let at_url = Endpoint { url, ..endpoint(Injection::None) };
    let [_, configuration] = configurations([], &GUARDS, &at_url, None, &keys());
    assert_eq!(unguarded(Some(&configuration)), None, "the certificate may be trusted everywhere");
    let lacks = |name: &str| {
        format!(
            "the ValidatingWebhookConfiguration etch lacks the webhook {name}: install config/admission, or \
             see in Etch's log why its leader has not added it"
        )
    };
    assert_eq!(of(&[GUARD], Injection::None, None), lacks(MIGRATION_GUARD));
    assert_eq!(of(&[], Injection::None, None), lacks(GUARD));
    assert_eq!(unguarded(None), Some(lacks(GUARD)));
}
