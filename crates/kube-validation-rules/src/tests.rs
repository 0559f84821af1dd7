//! Rules against the API server's own answers, which are kept in `cases`, and what they do not show.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::{Program, is_stopped, until_stopped};
use kube_structural_schema::finding::{Finding, Refused};
use kube_structural_schema::json::{DEPTH, Json};
use kube_structural_schema::schema::Schema;

const BUDGET: i64 = super::RUNTIME_BUDGET;

fn compile(schema: &Value, is_resource_root: bool) -> Option<Program> {
    Program::compile(&Schema::parse(schema).expect("a schema"), is_resource_root)
}

fn run(program: &Program, value: &Value, old: Option<&Value>, budget: i64) -> (Vec<Finding>, i64) {
    let mut findings = Vec::new();
    let left = program.validate(value, old, "", budget, &mut findings);
    (findings, left)
}

/// A schema with one rule more.
fn with_rule(schema: &Value, rule: Value) -> Value {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = json!([rule]);
    schema
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("one case to a line"))
}

/// What the server makes of each expression: whether it compiles, its value as text, and what it costs to
/// write that text.
#[test]
fn expressions_have_the_values_and_costs_that_the_server_gives_them() {
    let mut cases = lines(include_str!("cases/expressions.jsonl"));
    let given = cases.next().expect("a first line with the schema and the object");
    let (schema, object) = (&given["schema"], &given["object"]);
    let mut wrong = Vec::new();
    for case in cases {
        let expr = case["expr"].as_str().expect("an expression");
        let typed = with_rule(schema, json!({"rule": format!("true || dyn({expr}) == 1")}));
        let typed = compile(&typed, false).expect("a rule");
        let compiles = typed.broken_rules().is_empty();
        if compiles != case["compiles"].as_bool().unwrap_or(true) {
            wrong.push(format!("{expr}: compiles: {compiles} {:?}", typed.broken_rules()));
            continue;
        }
        if !compiles {
            continue;
        }
        let message = format!("'%s'.format([dyn({expr})])");
        let shown = with_rule(schema, json!({"rule": "false", "messageExpression": message}));
        let old = expr.contains("oldSelf").then_some(object);
        let (findings, left) = run(&compile(&shown, false).expect("a rule"), object, old, BUDGET);
        let value = findings
            .first()
            .map(|finding| finding.detail.as_str())
            .filter(|detail| *detail != "failed rule: false");
        if value != case["value"].as_str() {
            wrong.push(format!("{expr}: {value:?}, not {}", case["value"]));
        }
        if Some(BUDGET - left) != case["cost"].as_i64() {
            wrong.push(format!("{expr}: costs {}, not {}", BUDGET - left, case["cost"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The server's messages about rules that cannot be evaluated: the errors of Go's packages and of cel-go,
/// with the values in them.
#[test]
fn rules_fail_in_the_servers_words() {
    let mut cases = lines(include_str!("cases/failures.jsonl"));
    let given = cases.next().expect("a first line with the schema and the object");
    let mut wrong = Vec::new();
    for case in cases {
        let mut object = given["object"].clone();
        for (name, value) in case["with"].as_object().expect("fields that differ") {
            object[name] = value.clone();
        }
        let schema = with_rule(&given["schema"], json!({"rule": case["rule"]}));
        let (findings, _) = run(&compile(&schema, false).expect("a rule"), &object, None, BUDGET);
        let details: Vec<&str> = findings.iter().map(|finding| finding.detail.as_str()).collect();
        // The message of Go's compiler of regular expressions is not reproduced.
        let expected = case["detail"].as_str().expect("words");
        let upto = expected.find("error parsing regexp").unwrap_or(expected.len());
        if !matches!(details[..], [detail] if detail.get(..upto) == Some(&expected[..upto]) && (upto < expected.len() || detail == expected))
        {
            wrong.push(format!("{case}\n  {details:?}"));
        }
        let plain = findings.iter().map(|finding| finding.requirement());
        assert!(plain.into_iter().all(|plain| plain
            == format!("a rule cannot be evaluated: {}", case["rule"].as_str().expect("a rule").trim())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rules at every kind of node, with `allOf`, `oldSelf`, `reason`, `fieldPath` and budgets: the findings and
/// what is left.
#[test]
fn rules_are_run_where_the_server_runs_them() {
    let mut wrong = Vec::new();
    for case in lines(include_str!("cases/rules.jsonl")) {
        let program = compile(&case["schema"], case["root"].as_bool().unwrap_or(false));
        let Some(program) = program else {
            assert_eq!(case["none"], true, "{case}");
            continue;
        };
        let budget = case["budget"].as_i64().unwrap_or(BUDGET);
        let (findings, left) = run(&program, &case["object"], case.get("old"), budget);
        let mut found: Vec<Value> =
            findings.iter().map(|finding| json!([finding.kind.as_str(), finding.field])).collect();
        found.sort_by_key(ToString::to_string);
        let mut expected = case["errors"].as_array().expect("a list").clone();
        expected.sort_by_key(ToString::to_string);
        if found != expected || Some(left) != case["left"].as_i64() {
            wrong.push(format!("{case}\n  found {findings:?}, left {left}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_is_shared_between_threads() {
    let program =
        compile(&json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}), false);
    let program = program.expect("a rule");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|value| {
                scope.spawn({
                    let program = &program;
                    move || run(program, &json!(value), None, 100).0.len()
                })
            })
            .collect();
        let found: Vec<usize> = runs.into_iter().map(|run| run.join().expect("no panic")).collect();
        assert_eq!(found, [1, 1, 0, 0]);
    });
}

#[test]
fn findings_name_places_below_the_base() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "size(self) > 9", "message": "too few", "fieldPath": ".k"}]});
    let mut findings = Vec::new();
    compile(&schema, false).expect("a rule").validate(
        &json!({}),
        None,
        "spec.default",
        BUDGET,
        &mut findings,
    );
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].field.as_str(), findings[0].detail.as_str()), ("spec.default.[k]", "too few"));
}

#[test]
fn a_rule_that_makes_a_message_is_not_judged() {
    let schema = json!({"type": "object", "properties": {"i": {"type": "integer"}}});
    let broken = |rule: &str| {
        compile(&with_rule(&schema, json!({"rule": rule})), false).expect("a rule").broken_rules()
    };
    for rule in [
        "google.protobuf.Int64Value{value: self.i} == 1",
        ".google.protobuf.Struct{fields: {'a': google.protobuf.Value{}}} == {'a': null}",
        "google.protobuf.Duration{seconds: 1} == duration('1s')",
    ] {
        assert_eq!(broken(rule), [], "{rule}");
        let ruled = with_rule(&schema, json!({"rule": rule}));
        let (findings, left) = run(&compile(&ruled, false).expect("a rule"), &json!({"i": 2}), None, BUDGET);
        assert_eq!((findings.len(), left), (0, BUDGET), "{rule}");
    }
    for rule in
        ["google.protobuf.Nothing{a: 1} == 1", "google.protobuf.BoolValue{value: true}", "Object{a: 1} == 1"]
    {
        assert_eq!(broken(rule).len(), 1, "{rule}");
    }
}

#[test]
fn broken_rules_are_told_with_their_place() {
    let schema = json!({"type": "object", "properties": {
        "a": {
            "type": "array", "items": {
                "type": "string", "x-kubernetes-validations": [{"rule": "true"}, {"rule": "self > 1"}],
            },
        },
        "b": {
            "type": "object", "additionalProperties": {
                "type": "integer", "x-kubernetes-validations": [{"rule": "1"}],
            },
        },
        "c": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": "true"}]}}}});
    let broken = compile(&schema, false).expect("rules").broken_rules();
    let reported: Vec<_> = broken.iter().map(|broken| (broken.place.to_string(), broken.index)).collect();
    // `c` has no type in expressions, so the server runs nothing there.
    assert_eq!(reported, [(".a[]".to_owned(), Some(1)), (".b{}".to_owned(), Some(0))]);
}

#[test]
fn each_entry_of_another_type_is_an_error_in_a_map_and_the_first_item_in_a_list() {
    for (rule, columns) in [
        ("[1, 'a', 2.0, 'b'].size() == 1", &[5][..]),
        ("{'a': 1, 'b': 'x', 'c': 2, 'd': 'y'}.size() == 1", &[15, 33]),
        ("{1: 'a', 'b': 2, 'c': 3}.size() == 1", &[10, 15, 18, 23]),
    ] {
        let schema = with_rule(&json!({"type": "object"}), json!({"rule": rule}));
        let error = compile(&schema, false).expect("a rule").broken_rules().remove(0).error;
        let parts = error.split("<input>:1:").skip(1);
        let column = |part: &str| part.split(':').next()?.parse::<usize>().ok();
        let found: Vec<_> = parts.map(|part| column(part).expect("a column")).collect();
        assert_eq!(found, columns, "{rule}");
    }
}

#[test]
fn columns_are_characters() {
    for (rule, column) in
        [("'é' == 1", 5), ("'日本' == 1", 6), ("'😀'.nope()", 9), ("'é' == 'a' && size(1) == 2", 19)]
    {
        let schema = with_rule(&json!({"type": "object"}), json!({"rule": rule}));
        let broken = compile(&schema, false).expect("a rule").broken_rules();
        let expected = format!("compilation failed: ERROR: <input>:1:{column}: ");
        assert!(broken[0].error.starts_with(&expected), "{rule}: {}", broken[0].error);
    }
}

#[test]
fn a_value_that_a_clause_does_not_take_is_named_where_it_stands() {
    let octal = "octal clause can only be used on integers, was given";
    let text = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
        durations, and timestamps, was given";
    for (rule, column, words) in [
        ("'%s %o'.format([1, 1.5]) == ''", 20, format!("{octal} double")),
        (
            "'%o'.format([timestamp('2020-01-01T00:00:00Z')]) == ''",
            23,
            format!("{octal} google.protobuf.Timestamp"),
        ),
        ("'%o'.format([{'a': 1}]) == ''", 14, format!("{octal} map")),
        ("'%s'.format([[1, optional.of(1)]]) == ''", 29, format!("{text} optional_type")),
        ("'%s'.format([{optional.of(1): 2}]) == ''", 26, format!("{text} optional_type")),
    ] {
        let schema = with_rule(&json!({"type": "object"}), json!({"rule": rule}));
        let broken = compile(&schema, false).expect("a rule").broken_rules();
        let expected =
            format!("compilation failed: ERROR: <input>:1:{column}: error during formatting: {words}");
        assert_eq!(
            broken.iter().map(|broken| broken.error.lines().next()).collect::<Vec<_>>(),
            [Some(&*expected)]
        );
    }
}

#[test]
fn a_thousand_levels_are_no_danger() {
    let half = DEPTH / 2 - 1;
    let nested = ["{\"a\":[".repeat(half), "1".to_owned(), "]}".repeat(half)].concat();
    let object = Json::parse(format!("{{\"p\":{nested}}}").as_bytes()).expect("well-formed");
    let schema = json!({"type": "object",
        "properties": {"p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}, {"rule": "self.p != oldSelf.p"}]});
    let (findings, _) = run(&compile(&schema, false).expect("rules"), &object, Some(&object), BUDGET);
    assert_eq!(findings.len(), 1);

    let lists = DEPTH - 4;
    let schema = [
        r#"{"type":"array","x-kubernetes-validations":[{"rule":"self == self"}],"items":"#,
        &r#"{"type":"array","items":"#.repeat(lists),
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1"}]}"#,
        &"}".repeat(lists + 1),
    ]
    .concat();
    let schema = Json::parse(schema.as_bytes()).expect("well-formed");
    let value = ["[".repeat(lists + 1), "1".to_owned(), "]".repeat(lists + 1)].concat();
    let value = Json::parse(value.as_bytes()).expect("well-formed");
    let (findings, _) = run(&compile(&schema, false).expect("rules"), &value, None, BUDGET);
    assert_eq!(findings.iter().map(|finding| finding.field.len()).collect::<Vec<_>>(), [3 * (lists + 1)]);
}

#[test]
fn long_expressions_are_no_danger() {
    let refused = |rule: &str| {
        let schema = json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]});
        !compile(&schema, false).expect("a rule").broken_rules().is_empty()
    };
    let cases = [
        (format!("1{} > 0", "+1".repeat(248)), false),
        (format!("1{} > 0", "+1".repeat(250)), true),
        (format!("1{} > 0", "+1".repeat(30_000)), true),
        (format!("self == 1{}", " || self == 1".repeat(5_000)), false),
        (format!("{}1{} > 0", "(".repeat(249), ")".repeat(249)), false),
        (format!("{}1{} > 0", "(".repeat(250), ")".repeat(250)), true),
        (format!("{}1{} > 0", "(".repeat(20_000), ")".repeat(20_000)), true),
        (format!("{}true", "!".repeat(30_000)), false),
        (format!("self{} == 1", ".a".repeat(30_000)), true),
        (format!("{}{} == []", "[".repeat(5_000), "]".repeat(5_000)), true),
        ("x".repeat(100_001), true),
    ];
    for (rule, expected) in cases {
        assert_eq!(refused(&rule), expected, "{}…, {} bytes", &rule[..12], rule.len());
    }
}

#[test]
fn what_is_collected_is_not_copied_at_every_step() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "lists.range(30000).map(x, x).size() == 30000"},
        {"rule": "lists.range(30000).transformMap(i, v, v).size() == 30000"}]});
    // Copying would be a billion steps.
    let (findings, _) = run(&compile(&schema, false).expect("rules"), &json!({}), None, BUDGET);
    assert_eq!(findings, []);
}

#[test]
fn what_goes_through_too_many_pairs_is_not_begun() {
    let schema = json!({ "type": "array", "items": { "type": "integer" } });
    let (few, many) = (json!([1, 2, 3, 4]), json!((0..300_000).collect::<Vec<i64>>()));
    for rule in [
        "self.distinct().size() == 4",
        "sets.contains(self, self)",
        "sets.equivalent(self, self)",
        "sets.intersects(self, self)",
    ] {
        let program = compile(&with_rule(&schema, json!({ "rule": rule })), false).expect("a rule");
        assert_eq!(run(&program, &few, None, BUDGET).0, [], "{rule}");
        let (findings, left) = run(&program, &many, None, BUDGET);
        // Ninety billion pairs.
        assert_eq!((findings.len(), left), (1, -1), "{rule}");
    }
}

#[test]
fn sums_do_not_take_all_memory() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let rule = json!({ "rule": "self.map(x, self + self).size() == self.size()" });
    let program = compile(&with_rule(&list, rule), false).expect("a rule");
    let of = |items: i64| run(&program, &json!((0..items).collect::<Vec<i64>>()), None, BUDGET).0.len();
    // The last would take more than a gigabyte.
    assert_eq!((of(100), of(5_000)), (0, 1));
}

#[test]
fn what_is_stopped_evaluates_nothing_more() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "self.a == 1" }, { "rule": "self.a == 2" }] });
    let program = compile(&schema, false).expect("rules");
    let judged = |is_stopped: bool| {
        until_stopped(Arc::new(AtomicBool::new(is_stopped)), || {
            run(&program, &json!({ "a": 1 }), None, BUDGET)
        })
    };
    let (findings, left) = judged(true);
    assert!(left < 0 && findings.len() == 1 && findings[0].detail.contains("limit"), "{findings:?}");
    assert_eq!(judged(false).0[0].detail, "failed rule: self.a == 2");
    let nested = || until_stopped(Arc::default(), is_stopped);
    assert_eq!(until_stopped(Arc::new(AtomicBool::new(true)), || (nested(), is_stopped())), (false, true));
    assert!(!is_stopped(), "what ran before is over");
}

#[test]
fn updates_are_refused_by_the_value_that_a_rule_is_about() {
    use Refused::{Always, Changes};
    let value = json!({ "o": { "a": 1 } });
    for (at_root, rule, is_update, expected) in [
        (false, json!({ "rule": "self.a > 5" }), false, (Changes, None)),
        (false, json!({ "rule": "self.a > 5", "fieldPath": ".a" }), false, (Changes, Some("o"))),
        (true, json!({ "rule": "self.o.a > 5" }), false, (Always, None)),
        // What cannot be evaluated passes in no update.
        (false, json!({ "rule": "self.b > 5" }), false, (Always, None)),
        (false, json!({ "rule": "self.a / 0 > 5" }), false, (Always, None)),
        (false, json!({ "rule": "self.unknown" }), false, (Always, None)),
        // Nor does a rule about the change that the same object does not meet.
        (false, json!({ "rule": "self.a > oldSelf.a" }), true, (Always, None)),
        (false, json!({ "rule": "oldSelf.hasValue()", "optionalOldSelf": true }), false, (Changes, None)),
        (false, json!({ "rule": "oldSelf.value().b > 5", "optionalOldSelf": true }), false, (Changes, None)),
        (false, json!({ "rule": "!oldSelf.hasValue()", "optionalOldSelf": true }), true, (Always, None)),
    ] {
        let int = json!({ "type": "integer" });
        let mut schema = json!({ "type": "object", "properties": { "o": { "type": "object",
            "properties": { "a": int, "b": int } } } });
        let of_rule = if at_root { &mut schema } else { &mut schema["properties"]["o"] };
        of_rule["x-kubernetes-validations"] = json!([rule]);
        let program = compile(&schema, false).expect("a rule");
        assert_eq!(program.compares_with_old(), rule["rule"].to_string().contains("oldSelf"), "{rule}");
        let (findings, _) = run(&program, &value, is_update.then_some(&value), BUDGET);
        let found: Vec<_> =
            findings.iter().map(|finding| (finding.refused, finding.judged.as_deref())).collect();
        assert_eq!(found, [expected], "{rule}");
    }
}
