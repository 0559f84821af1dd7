//! Deciding about an object with nothing to do allocates the same for a small and for a large one.
//! Deciding that ends in a write is not measured: that is as large as what is missing.

use allocation_counter::measure;
use e2e::bench::crd_of;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Plan, Record, Terms, decide};
use serde_json::{Value, json};

/// How many ports the objects have.
const SIZES: [usize; 3] = [3, 30, 300];

#[test]
fn an_object_on_record_costs_nothing() {
    let record = Record { through: Some(5), ..Record::default() };
    assert_eq!(allocated(&record, &|ports| object(ports, "TCP")), [0; 3]);
}

#[test]
fn an_object_that_shows_no_default_costs_nothing() {
    assert_eq!(allocated(&Record::default(), &|ports| object(ports, "UDP")), [0; 3]);
}

#[test]
fn rules_that_no_default_can_break_cost_nothing() {
    let missing = |schema: Value| {
        let crd = Crd::read(&crd_of(&schema.into())).expect("a CRD");
        SIZES.map(|ports| {
            let object = Object::from(object(ports, "TCP"));
            let mut plan = None;
            let info = measure(|| plan = Some(decide(&object, &crd, &Terms::default(), &Record::default())));
            assert!(matches!(plan, Some(Plan::Write(_))), "{plan:?}");
            info.bytes_total
        })
    };
    let mut ruled = schema();
    let spec = &mut ruled["properties"]["spec"]["properties"];
    spec["notes"]["maxProperties"] = 1_000.into();
    spec["notes"]["x-kubernetes-validations"] = json!([{ "rule": "self.all(key, key != '')" }]);
    spec["ports"]["items"]["properties"]["number"]["oneOf"] = json!([{ "minimum": 1000 }, { "maximum": 1 }]);
    assert_eq!(missing(ruled.clone()), missing(schema()));
    // The same rule where it sees the default.
    let items = &mut ruled["properties"]["spec"]["properties"]["ports"]["items"];
    items["x-kubernetes-validations"] = json!([{ "rule": "self.protocol != ''" }]);
    assert!(missing(ruled)[0] > missing(schema())[0], "the objects are judged");
}

/// The bytes that deciding allocates, at each size.
fn allocated(record: &Record, object: &dyn Fn(usize) -> Value) -> [u64; 3] {
    let crd = Crd::read(&crd_of(&schema().into())).expect("a CRD");
    SIZES.map(|ports| {
        let object = Object::from(object(ports));
        let mut plan = None;
        let info = measure(|| plan = Some(decide(&object, &crd, &Terms::default(), record)));
        assert!(matches!(plan, Some(Plan::Stored(_))), "{ports} ports");
        info.bytes_total
    })
}

fn schema() -> Value {
    let port = json!({"type": "object", "properties": {
        "number": {"type": "integer"},
        "name": {"type": "string"},
        "protocol": {"type": "string", "default": "TCP"},
    }});
    let spec = json!({"type": "object", "properties": {
        "ports": {
            "type": "array",
            "items": port,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["number"],
        },
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    json!({"type": "object", "properties": {"spec": spec}})
}

/// An object with a number of ports and of notes, all of whose fields one manager has applied.
fn object(ports: usize, protocol: &str) -> Value {
    let numbers = || 1000..1000 + ports;
    let set = |names: &[&str]| -> Value {
        names.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<serde_json::Map<_, _>>().into()
    };
    let owned: serde_json::Map<_, _> = numbers()
        .map(|number| {
            (format!(r#"k:{{"number":{number}}}"#), set(&[".", "f:number", "f:name", "f:protocol"]))
        })
        .collect();
    let notes: serde_json::Map<_, _> =
        numbers().map(|number| (format!("note-{number}"), json!("text"))).collect();
    json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": "x", "namespace": "default", "uid": "b", "resourceVersion": "5",
            "managedFields": [{
                "manager": "kubectl",
                "operation": "Apply",
                "apiVersion": "stable.example.com/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:ports": owned, "f:notes": {}}},
            }],
        },
        "spec": {
            "ports": numbers()
                .map(|number| json!({
                    "number": number, "name": format!("port-{number}"), "protocol": protocol,
                }))
                .collect::<Vec<_>>(),
            "notes": notes,
        },
    })
}
