//! The findings as a SARIF log, for code scanning.
//!
//! Format: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use etch_lint::{Severity, rules};
use serde_json::{Value, json};

use super::checked::Located;
use super::print::place;

/// One run with all rules and the findings.
pub fn log(findings: &[Located]) -> Value {
    let rules: Vec<Value> = rules()
        .map(|rule| {
            json!({
                "id": rule.code,
                "name": rule.name,
                "shortDescription": { "text": rule.summary },
                "fullDescription": { "text": rule.help },
                "defaultConfiguration": { "level": level(rule.severity) },
            })
        })
        .collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    let driver = json!({
        "name": "etch",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": results }],
    })
}

fn result(Located { origin, crd, line, finding, accepted }: &Located) -> Value {
    let place = place(crd, finding);
    let mut location = json!({ "logicalLocations": [{ "fullyQualifiedName": place, "kind": "member" }] });
    if let Some(origin) = origin {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(&origin.file) } });
        if let Some(line) = line {
            location["physicalLocation"]["region"] = json!({ "startLine": line });
        }
    }
    let mut result = json!({
        "ruleId": finding.rule.code,
        "ruleIndex": rules().position(|rule| rule.code == finding.rule.code),
        "level": level(finding.rule.severity),
        "message": { "text": format!("{place}: {}", finding.message) },
        "locations": [location],
    });
    if let Some(reason) = accepted {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => {
                uri.push(byte.into())
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
