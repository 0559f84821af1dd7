//! Every vector of the project, answered by Etch.

use std::path::Path;

use e2e::conformance::{answer, run};

#[test]
fn etch_answers_every_vector_as_the_api_server_does() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut report = Vec::new();
    let tally = run(&[vectors], answer, &mut report).expect("memory takes any report");
    assert_eq!(tally.failed, 0, "{}", String::from_utf8_lossy(&report));
    assert!(tally.passed > 7_000, "only {} vectors were found", tally.passed);
}
