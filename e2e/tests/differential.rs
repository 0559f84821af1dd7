//! Etch and the API server's own code, asked the same random questions.

use e2e::conformance::{Op, answer};
use e2e::differential::{Campaign, Release, Seeds, Subject};

/// Cases of each op.
const PAIRS: u64 = 5_000;

fn agree(op: Op) {
    let seeds = Seeds::load().expect("the project has vectors of real CRDs");
    let campaign = Campaign {
        release: Release::V1_37,
        subject: Subject::Function(&answer),
        seed: 20_260_101,
        seeds: &seeds,
        first: 0,
        pairs: PAIRS,
        until: None,
        kinds: 3,
        workers: None,
    };
    let report = campaign.run(op).expect("the oracle answers");
    let mismatches: Vec<_> = report
        .mismatches
        .values()
        .map(|mismatch| format!("{}\n{}", mismatch.diff, String::from_utf8_lossy(&mismatch.vector.to_line())))
        .collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
    let unanswered: u64 = report.unanswered.values().sum();
    assert_eq!(report.compared + unanswered, PAIRS);
    assert!(unanswered * 100 < PAIRS, "{:?}", report.unanswered);
}

#[test]
fn reads_agree() {
    agree(Op::Read);
}

#[test]
fn structural_rules_agree() {
    agree(Op::Structural);
}

#[test]
fn validation_of_defaults_agrees() {
    agree(Op::Defaults);
}

#[test]
fn validation_of_objects_agrees() {
    agree(Op::Validate);
}
