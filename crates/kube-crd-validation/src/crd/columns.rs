//! Printer columns, and the JSON paths of columns and of `subresources.scale`.
//! A path may lead nowhere: the server does not check that.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceColumnDefinition` and `ValidateCustomResourceDefinitionSubresources`.

use super::document::{Column, Subresources};
use super::report::Report;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Checks the columns of a place.
pub(super) fn check(columns: &[Column<'_>], at: &str, report: &mut Report) {
    for (index, column) in columns.iter().enumerate() {
        let at = format!("{at}.additionalPrinterColumns[{index}]");
        if column.name.is_empty() {
            report.required(format!("{at}.name"), "");
        }
        let types = || format!("must be one of {}", TYPES.join(","));
        if column.kind.is_empty() {
            report.required(format!("{at}.type"), types());
        } else if !TYPES.contains(&column.kind) {
            report.invalid(format!("{at}.type"), types());
        }
        if !column.format.is_empty() && !FORMATS.contains(&column.format) {
            report.invalid(format!("{at}.format"), format!("must be one of {}", FORMATS.join(",")));
        }
        let at = format!("{at}.JSONPath");
        if column.json_path.is_empty() {
            report.required(at, "");
        } else {
            is_simple(column.json_path, &at, report);
        }
    }
}

/// Checks the paths of `scale`.
pub(super) fn check_scale(subresources: Option<&Subresources<'_>>, at: &str, report: &mut Report) {
    let Some(scale) = subresources.and_then(|subresources| subresources.scale.as_ref()) else { return };
    let at = format!("{at}.subresources.scale");
    let mut check = |name: &str, path: &str, below: &[&str], detail: &str| {
        let at = format!("{at}.{name}");
        if is_simple(path, &at, report) && !below.iter().any(|below| path.starts_with(below)) {
            report.invalid(at, detail);
        }
    };
    if !scale.spec_replicas.is_empty() {
        check("specReplicasPath", scale.spec_replicas, &[".spec."], "should be a json path under .spec");
    }
    if !scale.status_replicas.is_empty() {
        check(
            "statusReplicasPath",
            scale.status_replicas,
            &[".status."],
            "should be a json path under .status",
        );
    }
    if let Some(path) = scale.label_selector.filter(|path| !path.is_empty()) {
        let detail = "should be a json path under either .spec or .status";
        check("labelSelectorPath", path, &[".spec.", ".status."], detail);
    }
    for (name, path) in
        [("specReplicasPath", scale.spec_replicas), ("statusReplicasPath", scale.status_replicas)]
    {
        if path.is_empty() {
            report.required(format!("{at}.{name}"), "");
        }
    }
}

/// Whether a path begins as it must; reports an error if not.
fn is_simple(path: &str, at: &str, report: &mut Report) -> bool {
    let simple = path.starts_with('.');
    if !simple {
        report.invalid(at, "must be a simple json path starting with .");
    }
    simple
}
