//! A build without traces that is asked for them; for one with them see `e2e/tests/otlp`.

use std::process::Command;

use anyhow::Result;
use e2e::operator::binary;

use crate::process::run;

#[test]
fn who_asks_for_traces_that_are_not_built_in_is_told() -> Result<()> {
    for (endpoint, is_reported) in [("http://127.0.0.1:4318", true), ("", false)] {
        let mut command = Command::new(binary()?);
        command.arg("run").env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        let ended = run(command, b"")?;
        let reported = "OTEL_EXPORTER_OTLP_ENDPOINT is set, but this build lacks the feature otlp";
        assert_eq!((ended.code, ended.err.contains(reported)), (Some(2), is_reported), "{}", ended.err);
    }
    Ok(())
}
