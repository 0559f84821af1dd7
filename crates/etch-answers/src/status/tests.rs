//! What the overview shows, as it is printed on 80 columns.

use etch_core::api::{Counts, DefaultsReport, DefaultsReportSpec, DefaultsReportStatus, ObjectProblem};
use etch_core::condition::Condition;
use etch_core::message::OLD_CRDS;
use etch_core::object::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::facts::{CrdFacts, Facts, LeaderView, readable};
use super::overview::{Overview, overview};
use super::print::table;
use crate::Style;

fn now() -> Timestamp {
    "2026-11-26T12:00:00Z".parse().expect("a time")
}

fn crd(name: &str, conditions: &[(&str, &str, &str, &str)]) -> CrdFacts {
    let condition = |(kind, status, reason, message): &(&str, &str, &str, &str)| Condition {
        r#type: (*kind).to_owned(),
        status: (*status).to_owned(),
        reason: (*reason).to_owned(),
        message: (*message).to_owned(),
        observed_generation: None,
        last_transition_time: None,
    };
    let (_, group) = name.split_once('.').expect("a group");
    CrdFacts {
        name: name.to_owned(),
        group: group.to_owned(),
        conditions: conditions.iter().map(condition).collect(),
        ..CrdFacts::default()
    }
}

fn persisted(name: &str, reason: &str, message: &str) -> CrdFacts {
    let status = if reason == "AllPersisted" { "True" } else { "False" };
    crd(name, &[("DefaultsPersisted", status, reason, message)])
}

fn report(crd: &str, status: DefaultsReportStatus) -> DefaultsReport {
    let spec = DefaultsReportSpec { crd: crd.to_owned(), ..DefaultsReportSpec::default() };
    DefaultsReport { status: Some(status), ..DefaultsReport::new(crd, spec) }
}

fn problem(name: &str, reason: &str) -> ObjectProblem {
    ObjectProblem {
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        reason: reason.to_owned(),
        message: "a write would destroy fields that etcd may still hold and the schema no longer has"
            .to_owned(),
        ..ObjectProblem::default()
    }
}

/// A cluster with one of everything.
fn busy() -> Facts {
    let policies = json!({
        "default": {},
        "certificates": { "selector": { "groups": ["cert-manager.io"] }, "mode": "Audit", "paused": true },
    });
    let missing = "a permission is missing; add this rule to Etch's ClusterRole: …";
    let mut crds = vec![
        persisted("certificaterequests.cert-manager.io", "Forbidden", missing),
        persisted("certificates.cert-manager.io", "AllPersisted", ""),
        persisted("widgets.example.com", "InProgress", ""),
        persisted("gadgets.example.com", "HiddenFields", ""),
        crd(
            "wheels.example.com",
            &[
                ("InvalidDefaults", "True", "Invalid", ""),
                ("DefaultsPersisted", "False", "Settling", missing),
            ],
        ),
        crd("bare.example.com", &[]),
    ];
    crds.extend((0..40).map(|n| persisted(&format!("kind{n:02}.example.org"), "AllPersisted", "")));
    let running = DefaultsReportStatus {
        state: "InProgress".to_owned(),
        started: serde_json::from_value(json!("2026-11-26T11:59:00Z")).ok(),
        counts: Counts { objects: 12_000, written: 3_400, ..Counts::default() },
        ..DefaultsReportStatus::default()
    };
    let held = DefaultsReportStatus {
        state: "HiddenFields".to_owned(),
        counts: Counts { objects: 12, held: 7, rejected: 1, ..Counts::default() },
        held: (0..7).map(|n| problem(&format!("held-{n}"), "HiddenFields")).collect(),
        rejected: vec![problem("rejected", "Webhook")],
        ..DefaultsReportStatus::default()
    };
    Facts {
        flags: String::new(),
        kubernetes: Some("v1.37.1".to_owned()),
        leader: Some(Some(LeaderView {
            namespace: "etch-system".to_owned(),
            instance: "etch-5c9d8f7b6c-x2x7z".to_owned(),
            since: "2026-11-26T09:00:00Z".parse().ok(),
        })),
        policies: Some(serde_json::from_value(policies).ok()),
        policy_conditions: Vec::new(),
        unguarded: Some(None),
        schema_conditions: Vec::new(),
        reports: Some(Some(vec![
            report("widgets.example.com", running),
            report("gadgets.example.com", held),
        ])),
        crds: Some(crds),
        unread: Vec::new(),
        now: now(),
    }
}

fn printed(overview: &Overview) -> String {
    let mut out = Vec::new();
    table(&mut out, &Style::default(), overview, now()).expect("memory");
    let printed = String::from_utf8(out).expect("text");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    assert!(printed.lines().count() <= 40, "one screen: {printed}");
    printed
}

#[test]
fn names_of_any_length_fit_as_well() {
    let mut facts = busy();
    let long = |letter: &str| format!("{}.example.com", letter.repeat(240));
    facts.policies = serde_json::from_value(json!({
        long("p"): { "selector": { "names": ["*.example.com"] }, "paused": true },
    }))
    .ok()
    .map(Some);
    let running =
        facts.reports.as_ref().and_then(|reports| reports.as_ref()?.first()?.status.clone()).expect("one");
    facts.reports = Some(Some(vec![report(&long("c"), running)]));
    facts.crds = Some(vec![persisted(&long("c"), "InProgress", "")]);
    let printed = printed(&overview(facts));
    assert!(printed.contains("ppp…") && printed.contains("ccc…"), "{printed}");
}

#[test]
fn objects_of_an_ignored_crd_are_no_problem() {
    let with_state = |state: &str| {
        let status = DefaultsReportStatus {
            state: state.to_owned(),
            counts: Counts { objects: 2, held: 1, rejected: 1, ..Counts::default() },
            held: vec![problem("held", "HiddenFields")],
            rejected: vec![problem("rejected", "Webhook")],
            ..DefaultsReportStatus::default()
        };
        overview(Facts { reports: Some(Some(vec![report("gadgets.example.com", status)])), ..busy() })
            .problems
    };
    let held = with_state("HiddenFields");
    assert_eq!((held.held, held.rejected, held.objects.len()), (1, 1, 2));
    let ignored = with_state("Ignored");
    assert_eq!((ignored.held, ignored.rejected, ignored.objects.len()), (0, 0, 0));
}

#[test]
fn a_busy_cluster_fits_on_a_screen() {
    let overview = overview(busy());
    assert!(!overview.is_clean());
    let expected = format!(
        "\
Etch {}, Kubernetes v1.37.1
Leader: etch-system/etch-5c9d8f7b6c-x2x7z for 3h

POLICY         MODE      CRDS   GUARD   NOTE
certificates   Audit        2   Warn    paused by DefaultsPolicy certificates
                                        (paused)
default        Persist     44   Warn    

STATE             CRDS   FIRST
Forbidden            1   certificaterequests.cert-manager.io
HiddenFields         1   gadgets.example.com
InvalidDefaults      1   wheels.example.com
AllPersisted        41   
InProgress           1   
Settling             1   

PASS                  OBJECTS   WRITTEN   PER SECOND   FOR
widgets.example.com     12000      3400          200   60s

A permission is missing for certificaterequests.cert-manager.io; grant it:
  etch rbac --policy certificates | kubectl apply -f -

A permission is missing for wheels.example.com; grant it:
  etch rbac --policy default | kubectl apply -f -

1 object rejected, 7 objects held:
  gadgets default/rejected (Webhook): a write would destroy fields that etcd may
    still hold and the schema no longer has
  gadgets default/held-0 (HiddenFields): a write would destroy fields that etcd
    may still hold and the schema no longer has
  gadgets default/held-1 (HiddenFields): a write would destroy fields that etcd
    may still hold and the schema no longer has
  gadgets default/held-2 (HiddenFields): a write would destroy fields that etcd
    may still hold and the schema no longer has
  gadgets default/held-3 (HiddenFields): a write would destroy fields that etcd
    may still hold and the schema no longer has
  and 3 more; `kubectl get defaultsreports` counts them by CRD
",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(printed(&overview), expected);
}

#[test]
fn where_nothing_is_wrong_nothing_is_found() {
    let calm = || Facts {
        reports: Some(Some(Vec::new())),
        crds: Some(vec![persisted("widgets.example.com", "AllPersisted", "")]),
        ..busy()
    };
    let clean = overview(calm());
    assert!(clean.is_clean(), "{}", printed(&clean));
    let lacking = overview(Facts { reports: Some(None), ..calm() });
    assert!(!lacking.is_clean());
    assert!(
        printed(&lacking).contains("The CRD of DefaultsReports is missing: `etch crds"),
        "{}",
        printed(&lacking)
    );
    // An operator that has led for a while has set conditions on every CRD that is not new, if it may.
    let hour = |hours: i64| Some(now() - jiff::SignedDuration::from_hours(hours));
    for (created, since, is_clean) in
        [(hour(2), hour(1), false), (hour(0), hour(1), true), (hour(2), hour(0), true)]
    {
        let bare = CrdFacts { created, ..crd("widgets.example.com", &[]) };
        let mut facts = Facts { crds: Some(vec![bare]), ..calm() };
        if let Some(Some(leader)) = &mut facts.leader {
            leader.since = since;
        }
        let bare = overview(facts);
        assert_eq!(bare.is_clean(), is_clean, "{created:?} {since:?}");
        assert_eq!(printed(&bare).contains("NoCondition"), !is_clean, "{}", printed(&bare));
    }
    let leaderless = overview(Facts { leader: Some(None), ..calm() });
    assert!(!leaderless.is_clean());
    assert!(printed(&leaderless).contains("\nNo operator leads: none renews the Lease etch.\n"));
    let absent = overview(Facts { policies: Some(None), leader: Some(None), ..calm() });
    assert!(!absent.is_clean());
    let absent = printed(&absent);
    assert!(absent.contains("Etch is not installed: the cluster does not have its CRDs.\n"), "{absent}");
    assert!(absent.contains("No policy selects 1 CRD.\n"), "{absent}");
}

#[test]
fn what_could_not_be_read_is_not_taken_for_absent() {
    let unread = Facts {
        crds: Some(vec![crd("bare.example.com", &[])]),
        unread: vec!["the Lease of the operator: …".to_owned()],
        now: now(),
        ..Facts::default()
    };
    let overview = overview(unread);
    assert_eq!(
        printed(&overview),
        format!("Etch {}, Kubernetes of unknown version\n", env!("CARGO_PKG_VERSION"))
    );
    let document = serde_json::to_value(&overview).expect("JSON");
    assert_eq!(document["installed"], json!(null));
    assert_eq!(document["unread"], json!(["the Lease of the operator: …"]));
}

#[test]
fn programs_read_the_same() {
    let document = serde_json::to_value(overview(busy())).expect("JSON");
    assert_eq!(document["leader"]["since"], "2026-11-26T09:00:00Z");
    let pass = json!({ "crd": "widgets.example.com", "objects": 12_000, "written": 3_400, "perSecond": 200,
                       "started": "2026-11-26T11:59:00Z" });
    assert_eq!(document["passes"], json!([pass]));
    let missing = &document["missingPermissions"][0];
    assert_eq!(missing["crds"], json!(["certificaterequests.cert-manager.io"]));
    assert_eq!((&document["problems"]["held"], &document["problems"]["rejected"]), (&json!(7), &json!(1)));
    assert_eq!(document["ungoverned"], 0);
}

#[test]
fn crds_of_an_older_etch_are_named_with_the_command_that_replaces_them() {
    let mut facts = busy();
    let message = format!("40 of 40 objects store their defaults; {OLD_CRDS}");
    facts.crds = Some(vec![persisted("widgets.example.com", "AllPersisted", &message)]);
    let overview = overview(facts);
    assert!(
        printed(&overview).contains("Etch's CRDs are of an older Etch: `etch crds | kubectl apply -f -`")
    );
    assert!(!overview.is_clean());
}

#[test]
fn what_is_wrong_with_a_policy_itself_is_shown() {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let of_server = json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-26T09:00:00Z",
        });
        serde_json::from_value(of_server).expect("a condition")
    };
    let ready = || condition("Ready", "True", "InForce", "this policy governs 1 CRD");
    let calm = |conditions| Facts {
        policy_conditions: vec![("default".to_owned(), conditions)],
        reports: Some(Some(Vec::new())),
        crds: Some(vec![persisted("widgets.example.com", "AllPersisted", "")]),
        ..busy()
    };
    let fine = overview(calm(vec![ready(), condition("Conflicting", "False", "NoTie", "")]));
    assert!(fine.is_clean() && fine.policy_problems.is_empty());
    let nothing = || vec![condition("Ready", "True", "NothingSelected", "it matches no CRD")];
    let early = overview(calm(nothing()));
    assert!(early.is_clean(), "its CRDs may follow");
    let pause = json!({ "default": { "selector": { "names": ["none"] }, "pauseAll": true } });
    let policies = serde_json::from_value(pause).ok().map(Some);
    let pause = overview(Facts { policies, ..calm(nothing()) });
    assert!(pause.policy_problems.is_empty(), "{}", printed(&pause));
    assert!(
        printed(&early).contains("\ndefault: NothingSelected: it matches no CRD\n"),
        "{}",
        printed(&early)
    );
    for wrong in [
        condition("Ready", "False", "Unreadable", "spec has values"),
        condition("Conflicting", "True", "Tie", "other and this policy"),
        condition("UnknownPaths", "True", "NoSuchField", "onChange names fields"),
    ] {
        let line = format!("\ndefault: {}: {}\n", wrong.reason, wrong.message);
        let overview = overview(calm(vec![wrong]));
        assert!(!overview.is_clean());
        assert!(printed(&overview).contains(&line), "{}", printed(&overview));
    }
}

#[test]
fn a_guard_that_nobody_asks_is_not_shown_as_one() {
    let guarded = |guard: &str, unguarded: Option<&str>| {
        let policies = json!({ "default": { "guard": guard }, "ignored": { "mode": "Ignore" } });
        overview(Facts {
            policies: serde_json::from_value(policies).ok().map(Some),
            unguarded: Some(unguarded.map(str::to_owned)),
            reports: Some(Some(Vec::new())),
            crds: Some(vec![persisted("widgets.example.com", "AllPersisted", "")]),
            ..busy()
        })
    };
    let why = Some("install it");
    let denied = guarded("Deny", why);
    assert!(!denied.is_clean());
    let shown = printed(&denied);
    assert!(shown.contains("   Deny (not served)") && shown.contains("   Off\n"), "{shown}");
    assert!(shown.contains("\nguard: Deny refuses nothing: install it\n"), "{shown}");
    let warned = guarded("Warn", why);
    assert!(warned.is_clean(), "{}", printed(&warned));
    assert!(printed(&warned).contains("   Warn (not served)"), "{}", printed(&warned));
    assert!(!printed(&warned).contains("refuses nothing"), "{}", printed(&warned));
    let served = guarded("Deny", None);
    assert!(served.is_clean() && !printed(&served).contains("served"), "{}", printed(&served));
}

#[test]
fn an_embedded_schema_is_named_with_each_condition_that_is_false() {
    let condition = |kind: &str, status: &str, reason: &str| {
        let of_server = json!({
            "type": kind, "status": status, "reason": reason, "message": "why",
            "lastTransitionTime": "2026-11-26T09:00:00Z",
        });
        serde_json::from_value(of_server).expect("a condition")
    };
    let calm = |conditions| {
        overview(Facts {
            schema_conditions: vec![("provider".to_owned(), conditions)],
            reports: Some(Some(Vec::new())),
            crds: Some(vec![persisted("widgets.example.com", "AllPersisted", "")]),
            ..busy()
        })
    };
    let of = |status: &str| {
        vec![condition("FactsKnown", "Unknown", "NotServed"), condition("Serving", status, "NoCaBundle")]
    };
    assert!(calm(of("True")).is_clean());
    let unserved = calm(of("False"));
    assert!(!unserved.is_clean());
    let shown = printed(&unserved);
    assert!(shown.contains("\nEmbeddedSchema provider: NoCaBundle: why\n"), "{shown}");
    assert!(!shown.contains("NotServed"), "{shown}");
    let unseen = calm(Vec::new());
    assert!(!unseen.is_clean());
    assert!(printed(&unseen).contains("\nEmbeddedSchema provider: NoCondition: "), "{}", printed(&unseen));
}

#[test]
fn commands_lead_to_the_cluster_that_was_named() {
    let overview = overview(Facts { flags: " --context=prod".to_owned(), reports: Some(None), ..busy() });
    let mut out = Vec::new();
    table(&mut out, &Style::default(), &overview, now()).expect("memory");
    // A command stays in one line, however long it is.
    let printed = String::from_utf8(out).expect("text");
    for command in [
        "etch rbac --policy default --context=prod | kubectl apply --context=prod -f -",
        "etch crds | kubectl apply --context=prod -f -",
    ] {
        assert!(printed.contains(command), "{command}: {printed}");
    }
}

#[test]
fn a_command_for_an_operator_elsewhere_leaves_its_account_to_be_named() {
    let mut facts = busy();
    if let Some(Some(leader)) = &mut facts.leader {
        leader.namespace = "team-a".to_owned();
    }
    let overview = overview(facts);
    let commands: Vec<&str> = overview.missing_permissions.iter().map(|missing| &*missing.command).collect();
    assert!(
        commands.iter().all(|command| command.contains(" --service-account team-a:etch | ")),
        "{commands:?}"
    );
}

#[test]
fn a_canary_that_waits_for_a_user_is_named() {
    let waiting = persisted("widgets.example.com", "CanaryWaiting", "the canary wrote 3 objects");
    let overview = overview(Facts { crds: Some(vec![waiting]), reports: Some(Some(Vec::new())), ..busy() });
    assert!(!overview.is_clean());
    assert!(
        printed(&overview).contains("CanaryWaiting      1   widgets.example.com"),
        "{}",
        printed(&overview)
    );
}

#[test]
fn the_report_of_a_crd_that_no_policy_selects_counts_no_more() {
    let facts = || Facts { policies: Some(Some(Default::default())), ..busy() };
    let ungoverned = overview(facts());
    assert_eq!((ungoverned.problems.held, ungoverned.problems.rejected, ungoverned.passes.len()), (0, 0, 0));
    let unread = overview(Facts { policies: None, ..facts() });
    assert_eq!((unread.problems.held, unread.problems.rejected, unread.passes.len()), (7, 1, 1));
}

#[test]
fn a_report_that_cannot_be_read_is_noted() {
    let of = |spec: Value| {
        let metadata = json!({ "name": "widgets.example.com" });
        let kind = "DefaultsReport";
        Object::from(json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
        }))
    };
    let mut unread = Vec::new();
    assert!(readable(&[of(json!(["secret"]))], &mut unread).is_empty());
    assert!(
        unread[0].starts_with("DefaultsReport widgets.example.com: ") && !unread[0].contains("secret"),
        "{unread:?}"
    );
}

#[test]
fn a_condition_about_an_earlier_generation_shows_no_state() {
    let state_of = |observed: Option<i64>, generation| {
        let mut crd = persisted("widgets.example.com", "AllPersisted", "all");
        crd.conditions[0].observed_generation = observed;
        crd.generation = generation;
        let states = overview(Facts { crds: Some(vec![crd]), ..Facts::default() }).crds;
        states.iter().map(|state| state.state.clone()).collect::<Vec<_>>()
    };
    assert_eq!(state_of(Some(1), Some(2)), ["Outdated"]);
    for (observed, generation) in [(Some(2), Some(2)), (None, Some(2)), (Some(1), None)] {
        assert_eq!(state_of(observed, generation), ["AllPersisted"]);
    }
}
