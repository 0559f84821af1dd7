//! The conditions on a CRD, and when they are written again.

use serde_json::json;

use super::*;

const BEFORE: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-02-02T00:00:00Z";

fn crd_status() -> CrdStatus {
    CrdStatus {
        non_structural: Vec::new(),
        invalid_defaults: Vec::new(),
        breaking_defaults: Vec::new(),
        persisted: Some(true),
        reason: Reason::AllPersisted,
        message: "all 7 objects store their defaults".to_owned(),
        nameless: None,
    }
}

fn wording(crd_status: &CrdStatus, present: &[Condition]) -> Vec<String> {
    let conditions = crd_status.conditions(3, present, NOW);
    conditions.iter().map(|it| format!("{}={} {}: {}", it.r#type, it.status, it.reason, it.message)).collect()
}

#[test]
fn the_three_are_always_said_together() {
    assert_eq!(
        wording(&crd_status(), &[]),
        [
            "NonStructural=False Structural: ",
            "InvalidDefaults=False Valid: ",
            "DefaultsPersisted=True AllPersisted: all 7 objects store their defaults",
        ]
    );
    let broken = CrdStatus {
        non_structural: vec!["spec.a: Required value".to_owned()],
        invalid_defaults: vec![".spec.b".to_owned(), ".spec.c".to_owned()],
        breaking_defaults: Vec::new(),
        persisted: Some(false),
        reason: Reason::NonStructural,
        message: String::new(),
        nameless: None,
    };
    assert_eq!(
        wording(&broken, &[]),
        [
            "NonStructural=True Violations: the schema is not structural: spec.a: Required value",
            "InvalidDefaults=True InvalidDefaults: defaults are themselves invalid: .spec.b, .spec.c",
            "DefaultsPersisted=False NonStructural: ",
        ]
    );
    let breaking = CrdStatus { breaking_defaults: vec![".spec.d".to_owned()], ..crd_status() };
    assert_eq!(
        wording(&breaking, &[])[1],
        "InvalidDefaults=True InvalidDefaults: defaults make objects invalid: .spec.d"
    );
    let both = CrdStatus { breaking_defaults: vec![".spec.d".to_owned()], ..broken };
    assert!(wording(&both, &[])[1].ends_with(".spec.b, .spec.c; defaults make objects invalid: .spec.d"));
    let unknown = CrdStatus { persisted: None, reason: Reason::Ignored, ..crd_status() };
    assert!(wording(&unknown, &[])[2].starts_with("DefaultsPersisted=Unknown Ignored"));
}

#[test]
fn every_condition_is_about_the_generation_that_was_judged() {
    assert!(crd_status().conditions(3, &[], NOW).iter().all(|it| it.observed_generation == Some(3)));
}

#[test]
fn the_transition_time_moves_only_when_the_status_flips() {
    let times = |crd_status: &CrdStatus, present: &[Condition]| -> Vec<String> {
        let conditions = crd_status.conditions(4, present, NOW);
        conditions.into_iter().map(|it| it.last_transition_time.expect("always given")).collect()
    };
    let before = crd_status().conditions(3, &[], BEFORE);
    assert_eq!(times(&crd_status(), &before), [BEFORE; 3]);
    let other_words = CrdStatus { reason: Reason::NoDefaults, message: "another".to_owned(), ..crd_status() };
    assert_eq!(times(&other_words, &before), [BEFORE; 3], "reason and message are no status");
    let flipped = CrdStatus { persisted: Some(false), ..crd_status() };
    assert_eq!(times(&flipped, &before), [BEFORE, BEFORE, NOW]);
    let unknown = CrdStatus { persisted: None, ..crd_status() };
    assert_eq!(times(&unknown, &before), [BEFORE, BEFORE, NOW], "unknown is a status of its own");
    assert_eq!(times(&crd_status(), &before[..1]), [BEFORE, NOW, NOW]);
    let without_time: Vec<_> =
        before.into_iter().map(|it| Condition { last_transition_time: None, ..it }).collect();
    assert_eq!(times(&crd_status(), &without_time), [NOW; 3]);
}

#[test]
fn messages_end_at_a_whole_character_within_a_kibibyte() {
    let message = |text: String| {
        let crd_status = CrdStatus { message: text, ..crd_status() };
        crd_status.conditions(1, &[], NOW).pop().expect("three conditions").message
    };
    assert_eq!(message("a".repeat(1024)), "a".repeat(1024));
    assert_eq!(message("a".repeat(1025)), format!("{}…", "a".repeat(1021)));
    // Characters of two, three and four bytes, at every offset from the cut.
    for wide in ["ü", "語", "𝄞"] {
        for offset in 0..5 {
            let text = "a".repeat(offset) + &wide.repeat(1024);
            let cut = message(text.clone());
            assert!(cut.len() <= MAX_MESSAGE && cut.len() > MAX_MESSAGE - 4, "{} bytes", cut.len());
            assert!(text.starts_with(cut.strip_suffix('…').expect("a sign that it was cut")));
        }
    }
    let many = CrdStatus { invalid_defaults: vec![".spec.x".repeat(100); 9], ..crd_status() };
    assert!(many.conditions(1, &[], NOW).iter().all(|it| it.message.len() <= MAX_MESSAGE));
}

#[test]
fn the_first_few_of_many_are_named() {
    let names = |count: usize| (0..count).map(|index| format!("o{index}")).collect::<Vec<_>>();
    assert_eq!(list(&names(1), "held"), "held: o0");
    assert_eq!(list(&names(5), "held"), "held: o0, o1, o2, o3, o4");
    assert_eq!(list(&names(8), "held"), "held: o0, o1, o2, o3, o4 and 3 more");
}

#[test]
fn what_stands_there_already_is_the_same() {
    let present = crd_status().conditions(3, &[], BEFORE);
    let again = crd_status().conditions(3, &[], NOW);
    assert!(same(&again, &present), "times do not count");
    let mut shuffled = present.clone();
    shuffled.reverse();
    assert!(same(&again, &shuffled), "nor does the order");
    assert!(!same(&again, &present[1..]), "one is missing");
    assert!(!same(&again, &[]));
    assert!(same(&[], &[]));
    let changed = |change: fn(&mut Condition)| {
        let mut other = present.clone();
        change(&mut other[2]);
        same(&again, &other)
    };
    assert!(!changed(|it| it.status = "False".to_owned()));
    assert!(!changed(|it| it.reason = "InProgress".to_owned()));
    assert!(!changed(|it| it.message.push('.')));
    assert!(!changed(|it| it.observed_generation = Some(2)));
    assert!(changed(|it| it.observed_generation = None), "servers before 1.36 drop it");
}

#[test]
fn only_our_conditions_are_read_back() {
    let ours = |conditions: serde_json::Value| {
        present(&Json::from(json!({ "status": { "conditions": conditions } })))
    };
    let all = json!([
        { "type": "Established", "status": "True" },
        { "type": "NonStructuralSchema", "status": "True" },
        { "type": "DefaultsPersisted", "status": "True", "reason": "AllPersisted", "observedGeneration": 2 },
        { "type": "InvalidDefaults" },
        "text",
    ]);
    let found = ours(all);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].r#type.as_str(), found[0].observed_generation), ("DefaultsPersisted", Some(2)));
    for none in [json!(null), json!([]), json!({}), json!("text")] {
        assert_eq!(ours(none), []);
    }
    assert_eq!(present(&Json::from(json!({}))), []);
}

#[test]
fn a_list_of_long_names_leaves_room_for_what_comes_after_it() {
    let long: Vec<String> = (0..9).map(|index| format!("{index}{}", "n".repeat(500))).collect();
    let text = list(&long, "9 refused");
    assert!(text.len() < 400, "{}", text.len());
    assert!(text.starts_with("9 refused: 0nn") && text.ends_with(" and 8 more"), "{text}");
    let short: Vec<String> = (0..9).map(|index| format!("ns/{index}")).collect();
    assert_eq!(list(&short, "9 held"), "9 held: ns/0, ns/1, ns/2, ns/3, ns/4 and 4 more");
    let wide = vec!["ä".repeat(400)];
    assert!(list(&wide, "held").contains('…'), "and no character is cut in two");
}
