use serde_json::{Value, json};

use super::super::refusal::Part;
use super::*;

fn crd(spec: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

fn found(crd: Value, old: Option<Value>) -> Vec<String> {
    let old = old.map(Json::from);
    let findings = as_applied(&crd.into(), old.as_ref(), &Release::ALL);
    findings
        .iter()
        .map(|finding| {
            format!("{} {} {}: {}", finding.rule.code, finding.version, finding.place(), finding.message)
        })
        .collect()
}

/// Where a schema of `.spec` stands in the document.
const AT: &str = "spec.versions[0].schema.openAPIV3Schema.properties.spec";

#[test]
fn unknown_fields_are_found_at_every_place() {
    let mut document =
        crd(json!({"type": "object", "properties": {"defualt": {"type": "string", "defualt": "x"},
            "b": {"Type": "string"}},
        "default": {"any": 1}, "items": [{"minimun": 1}], "allOf": [{"xyzzy": 1}], "additionalProperties": {
            "patern": "x",
        },
        "x-kubernetes-validations": [{"rule": "true", "reasn": "x"}], "externalDocs": {"uri": "x"}}));
    document["sepc"] = json!({});
    document["metadata"]["anotations"] = json!({});
    document["metadata"]["labels"] = json!({"any": "x"});
    document["spec"]["version"] = json!("v1");
    document["spec"]["names"]["shortname"] = json!("th");
    document["spec"]["versions"][0]["storag"] = json!(true);
    document["spec"]["versions"][0]["subresources"] =
        json!({"status": {"any": 1}, "scale": {"labelSelector": "x"}});
    document["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"JSONPath": "x"}]);
    document["spec"]["versions"][0]["selectableFields"] = json!([{"path": "x"}]);
    document["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"ca": "x", "service": {"host": "x"}}}});
    let places: Vec<String> = found(document, None)
        .into_iter()
        .map(|text| {
            let (code, rest) = text.split_once(' ').expect("a code");
            assert_eq!(code, "ETCH401");
            rest.split_once(": ").expect("a message").0.trim_start_matches("v1").trim().replace(AT, "AT")
        })
        .collect();
    let mut expected = vec![
        "sepc",
        "metadata.anotations",
        "spec.version",
        "spec.names.shortname",
        "spec.versions[0].storag",
        "spec.versions[0].subresources.scale.labelSelector",
        "spec.versions[0].additionalPrinterColumns[0].JSONPath",
        "spec.versions[0].selectableFields[0].path",
        "spec.conversion.webhook.clientConfig.ca",
        "spec.conversion.webhook.clientConfig.service.host",
        "AT.properties.defualt.defualt",
        "AT.properties.b.Type",
        "AT.items[0].minimun",
        "AT.allOf[0].xyzzy",
        "AT.additionalProperties.patern",
        "AT.x-kubernetes-validations[0].reasn",
        "AT.externalDocs.uri",
    ];
    expected.sort_unstable();
    let mut places = places;
    places.sort();
    assert_eq!(places, expected);
}

#[test]
fn a_typed_keyword_is_taken_for_the_one_that_is_meant() {
    let message = |keyword: &str| {
        let found = found(crd(json!({"type": "object", keyword: 1})), None);
        found[0].split_once("drop the field").expect("a message").1.to_owned()
    };
    for (typed, meant) in
        [("defualt", "default"), ("Default", "default"), ("maxLenght", "maxLength"), ("enums", "enum")]
    {
        assert_eq!(message(typed), format!("; did you mean {meant}?"));
    }
    assert_eq!(message("something"), "");
}

#[test]
fn rules_that_occur_twice_are_found() {
    let rules = json!([{"rule": "self > 1"}, {"rule": "self > 2"}, {"rule": "self > 1", "message": "x"}]);
    let found = found(crd(json!({"type": "integer", "x-kubernetes-validations": rules})), None);
    let expected = format!(
        "ETCH402 v1 {AT}.x-kubernetes-validations[2]: kubectl apply --server-side refuses duplicate entries \
         for key [rule=\"self > 1\"]"
    );
    assert_eq!(found, [expected]);
}

#[test]
fn what_the_server_reads_leniently_loses_unknown_fields_and_may_repeat_rules() {
    let inner = json!({
        "type": "integer", "defualt": 1, "x-kubernetes-validations": [{"rule": "true"}, {"rule": "true"}],
    });
    let unknown = |place: &str, consequence: &str| {
        format!(
            "ETCH401 v1 {AT}.{place}.defualt: unknown field \"defualt\": {consequence}; did you mean default?"
        )
    };
    for (place, schema) in [
        ("items", json!({"type": "array", "items": inner})),
        ("additionalProperties", json!({"type": "object", "additionalProperties": inner})),
        (
            "items.properties.a",
            json!({"type": "array", "items": {"type": "object", "properties": {"a": inner}}}),
        ),
    ] {
        let expected = unknown(place, "the API server drops it here and reports nothing");
        assert_eq!(found(crd(schema), None), [expected]);
    }
    let of_that_name = found(crd(json!({"type": "object", "properties": {"items": inner}})), None);
    assert_eq!(of_that_name.len(), 2, "{of_that_name:?}");
    assert_eq!(
        of_that_name[0],
        unknown("properties.items", "kubectl refuses the CRD, other clients drop the field")
    );
}

#[test]
fn what_the_server_warns_of_is_found_unless_it_is_known() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "format": "hostname2"}, "b": {"type": "integer", "format": "uint8"}, "c": {
            "type": "integer", "format": "int32",
        },
        "d": {"type": "string", "format": "int32"}, "e": {"type": "string", "format": "date-time"}, "f": {
            "type": "number", "format": "double",
        },
        "g": {
            "type": "array", "x-kubernetes-list-type": "set", "items": {
                "type": "object", "x-kubernetes-map-type": "atomic",
            },
        },
        "h": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "i": {"type": "object", "format": "date"}}});
    let warning = |code: &str, place: &str, text: &str| {
        format!("{code} v1 {AT}.properties.{place}: the API server warns: {text}")
    };
    let expected = [
        warning("ETCH404", "a.format", "unrecognized format \"hostname2\""),
        warning("ETCH404", "b.format", "unrecognized format \"uint8\""),
        warning("ETCH404", "d.format", "unrecognized format \"int32\""),
        warning(
            "ETCH405",
            "g.x-kubernetes-list-type",
            "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply \
             or CEL validation rules",
        ),
        warning("ETCH404", "i.format", "unrecognized format \"date\""),
    ];
    assert_eq!(found(crd(schema.clone()), None), expected);
    assert_eq!(found(crd(schema.clone()), Some(crd(schema.clone()))), [""; 0]);
    let before_sets: Vec<Release> = Release::ALL.into_iter().filter(|release| release.minor() < 37).collect();
    let early = as_applied(&crd(schema).into(), None, &before_sets);
    assert_eq!(early.len(), 4, "{early:?}");
}

#[test]
fn annotations_are_measured_as_kubectl_writes_them() {
    let with = |bytes: usize, letter: &str| {
        let mut crd = crd(json!({"type": "object"}));
        crd["metadata"]["annotations"] = json!({"a": "b"});
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!(letter.repeat(bytes));
        found(crd, None)
    };
    let length = |found: &[String]| -> usize {
        let text = found.first().expect("too long").split_once("store ").expect("bytes").1;
        text.split_once(' ').expect("bytes").0.parse().expect("a number")
    };
    let base = length(&with(300_000, "x")) - 300_000;
    let room = 262_144 - base;
    assert_eq!(with(room, "x"), [""; 0]);
    assert_eq!(length(&with(room + 1, "x")), 262_145);
    // Go escapes these in six bytes, and a line feed in two.
    assert_eq!(length(&with(50_000, "<")), base + 300_000);
    assert_eq!(length(&with(150_000, "\n")), base + 300_000);
    assert_eq!(length(&with(150_000, "\u{e9}")), base + 300_000);
    assert_eq!(length(&with(50_000, "\u{2028}")), base + 300_000);
}

#[test]
fn all_of_the_document_is_applied_but_an_earlier_copy() {
    let mut document = crd(json!({"type": "object"}));
    let plain = annotation::tests_size(&document);
    document["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "x"});
    assert_eq!(annotation::tests_size(&document), plain);
    document["status"] = json!({"conditions": []});
    assert_eq!(annotation::tests_size(&document), plain + r#","status":{"conditions":[]}"#.len());
}

#[test]
fn a_key_that_occurs_twice_has_its_place() {
    let field = |name: &str| Part::Field(name.to_owned());
    let place = vec![
        field("spec"),
        field("versions"),
        Part::Item(0),
        field("schema"),
        field("openAPIV3Schema"),
        field("properties"),
        field("spec"),
        field("default"),
    ];
    let of_two_types = duplicate_key(&crd(json!({})).into(), place.clone(), true);
    assert!(of_two_types.message.ends_with("kubectl takes either value"), "{}", of_two_types.message);
    let finding = duplicate_key(&crd(json!({})).into(), place, false);
    assert_eq!(finding.message, "the key occurs twice; kubectl takes the last value");
    assert_eq!((finding.version.as_str(), finding.place()), ("v1", format!("{AT}.default")));
    assert_eq!(finding.path.to_string(), ".spec");
}
