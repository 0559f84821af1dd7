use serde_json::json;

use super::*;

fn schema(name: &str, uid: &str, generation: i64, path: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
        "metadata": { "name": name, "uid": uid, "generation": generation },
        "spec": {
            "targets": [{ "version": "v1", "resource": "things", "path": path }],
            "facts": [{ "name": "id", "path": ".id",
                        "object": { "version": "v1", "resource": "configs", "name": "it" } }],
        },
    }))
    .expect("an object")
}

fn served(state: &State) -> Schemas {
    state.serving(&Schemas::new())
}

/// Has all facts taken that are to be taken.
fn take(state: &mut State) {
    for taking in state.takings() {
        let values = taking.values();
        state.taken(taking, values);
    }
}

fn found(id: &str) -> FactState {
    FactState::Found(Arc::new(json!({ "id": id })))
}

#[test]
fn the_last_good_one_is_served() {
    let mut state = State::default();
    state.schema_applied(schema("a", "1", 1, ".spec"));
    state.schema_applied(schema("a", "1", 2, "spec["));
    let known = &state.schemas["a"];
    assert!(!known.problems.is_empty());
    assert_eq!((known.generation, known.good.as_ref().map(|good| good.generation)), (2, Some(1)));
    assert_eq!(served(&state).len(), 1);
    state.schema_applied(schema("a", "2", 1, "spec["));
    assert!(served(&state).is_empty(), "another one of the same name");
    state.schema_applied(schema("a", "2", 2, ".spec"));
    assert!(state.schemas["a"].problems.is_empty() && served(&state).len() == 1);
}

#[test]
fn a_replica_that_starts_serves_the_last_good_one_as_soon_as_the_status_has_it() {
    let mut state = State::default();
    let mut broken = schema("a", "1", 2, "spec[");
    state.schema_applied(broken.clone());
    assert!(served(&state).is_empty());
    let spec = schema("a", "1", 1, ".spec").data["spec"].take();
    broken.data["status"] = json!({ "lastGood": { "generation": 1, "spec": spec } });
    state.schema_applied(broken);
    let known = &state.schemas["a"];
    assert_eq!((known.generation, known.good.as_ref().map(|good| good.generation)), (2, Some(1)));
    assert!(!known.problems.is_empty() && served(&state).len() == 1);
}

#[test]
fn a_list_takes_away_what_it_does_not_have() {
    let mut state = State::default();
    state.schema_applied(schema("a", "1", 1, ".spec"));
    assert!(!state.is_listed);
    state.list_schemas();
    state.schema_applied(schema("b", "2", 1, ".spec"));
    assert_eq!(served(&state).len(), 2, "until the list is complete");
    state.schemas_listed();
    assert_eq!(served(&state).into_keys().collect::<Vec<_>>(), ["b"]);
    state.schema_deleted("b");
    assert!(served(&state).is_empty() && state.is_complete());
}

#[test]
fn a_generation_that_is_not_earlier_is_not_the_last_good_one() {
    let mut state = State::default();
    let mut broken = schema("a", "1", 2, "spec[");
    let spec = schema("a", "1", 1, ".spec").data["spec"].take();
    broken.data["status"] = json!({ "lastGood": { "generation": 2, "spec": spec } });
    state.schema_applied(broken);
    assert!(state.schemas["a"].good.is_none());
}

#[test]
fn facts_are_those_of_the_objects_as_they_are_now() {
    let mut state = State::default();
    state.list_schemas();
    state.schema_applied(schema("a", "1", 1, ".spec"));
    state.schemas_listed();
    let object = state.fact_objects().pop_first().expect("one");
    assert!(!state.is_complete());
    assert_eq!(served(&state)["a"].missing, ["id"]);
    for id in ["x", "y"] {
        state.fact(object.clone(), found(id));
        take(&mut state);
        assert!(state.is_complete());
        assert_eq!(served(&state)["a"].facts, json!({ "id": id }));
    }
    state.fact(object.clone(), FactState::Absent);
    assert_eq!(served(&state)["a"].missing, ["id"]);
    state.fact(object, found("z"));
    assert_eq!(served(&state)["a"].missing, ["id"], "not what it was before it was absent");
}

#[test]
fn facts_are_taken_once_for_each_state_of_the_object_and_each_declaration() {
    let mut state = State::default();
    let applied = |state: &mut State, generation, id: &str| {
        let mut schema = schema("a", "1", generation, ".spec");
        schema.data["spec"]["facts"][0]["path"] = json!(id);
        state.schema_applied(schema);
    };
    applied(&mut state, 1, ".id");
    let object = state.fact_objects().pop_first().expect("one");
    state.fact(object.clone(), found("x"));
    assert_eq!(state.takings().len(), 1);
    assert_eq!(state.missing_facts("a"), Some(vec!["id (its expression is being evaluated)".to_owned()]));
    take(&mut state);
    state.fact(object.clone(), found("x"));
    assert!(state.takings().is_empty(), "it is as it was");
    state.schema_applied(schema("b", "2", 1, ".spec"));
    assert_eq!(state.takings().len(), 1, "those of the other schema");
    state.schema_deleted("b");
    applied(&mut state, 2, ".id");
    assert!(state.takings().is_empty(), "the facts are declared as before");
    let before = served(&state);
    state.fact(object.clone(), found("y"));
    assert_eq!(state.takings().len(), 1);
    assert_eq!(served(&state)["a"].facts, json!({ "id": "x" }), "until they are taken");
    take(&mut state);
    assert_eq!(served(&state)["a"].facts, json!({ "id": "y" }));
    applied(&mut state, 3, ".metadata");
    let late = state.takings();
    assert_eq!(state.serving(&before)["a"].facts, json!({ "id": "x" }), "what is served stays");
    applied(&mut state, 4, ".id");
    late.into_iter().for_each(|taking| state.taken(taking, Map::new()));
    assert_eq!(state.takings().len(), 1, "that was the declaration before");
}

#[test]
fn objects_in_namespaces_count_only_where_a_namespace_is_declared() {
    let declared = |namespace: Option<&str>| FactObject {
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        name: "it".to_owned(),
        namespace: namespace.map(str::to_owned),
        ..FactObject::default()
    };
    let object = |namespace: Option<&str>| -> DynamicObject {
        let metadata = json!({ "name": "it", "namespace": namespace });
        serde_json::from_value(json!({ "metadata": metadata })).expect("an object")
    };
    for namespace in [None, Some("a")] {
        let found = FactState::of(&declared(namespace), object(namespace));
        assert!(matches!(found, FactState::Found(_)), "{found:?}");
    }
    let why = "configmaps is a namespaced resource: set object.namespace";
    let found = FactState::of(&declared(None), object(Some("a")));
    assert_eq!(found, FactState::Namespaced(why.to_owned()));
    let mut state = State::default();
    state.list_schemas();
    state.schema_applied(schema("a", "1", 1, ".spec"));
    state.schemas_listed();
    let object = state.fact_objects().pop_first().expect("one");
    state.fact(object.clone(), FactState::Absent);
    state.fact(object, found);
    assert_eq!(state.missing_facts("a"), Some(vec![format!("id ({why})")]));
    assert!(state.is_settled() && !state.is_complete());
}

#[test]
fn a_fallback_is_for_an_object_that_is_known_to_give_no_value() {
    let mut state = State::default();
    let mut with_fallback = schema("a", "1", 1, ".spec");
    with_fallback.data["spec"]["facts"][0]["fallback"] = json!("z");
    state.list_schemas();
    state.schema_applied(with_fallback);
    state.schemas_listed();
    let object = state.fact_objects().pop_first().expect("one");
    let missing = |state: &State| (served(state)["a"].missing.clone(), state.missing_facts("a"));
    let of = |fact: &str| (vec!["id".to_owned()], Some(vec![fact.to_owned()]));
    assert_eq!(missing(&state), of("id"));
    assert!(!state.is_complete() && state.checked_schemas().is_empty());
    let unread = || FactState::Unread("the API server answered 500 to the list".to_owned());
    state.fact(object.clone(), unread());
    assert_eq!(missing(&state), of("id (the API server answered 500 to the list)"));
    assert!(!state.is_complete() && state.checked_schemas().is_empty());
    for (fact, value) in [
        (FactState::Absent, "z"),
        (FactState::Found(Arc::new(json!({}))), "z"),
        (found("x"), "x"),
        (unread(), "x"),
    ] {
        state.fact(object.clone(), fact);
        take(&mut state);
        assert_eq!(served(&state)["a"].facts, json!({ "id": value }));
        assert!(state.is_complete() && missing(&state).1 == Some(Vec::new()));
    }
}
