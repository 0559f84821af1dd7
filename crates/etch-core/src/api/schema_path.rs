//! Schema paths in records, however the Etch that wrote them writes paths.
//! It must not refuse a path that it cannot read: a record is worth its other lines.

use kube_structural_schema::path::Path;
use serde::{Deserialize, Deserializer};

/// A schema path as Etch writes it now, where it is one: Etch compares paths as text.
fn canonical(text: String) -> String {
    text.parse::<Path>().map_or(text, |path| path.to_string())
}

/// Reads one path.
pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(canonical)
}

/// Reads several paths.
pub(super) fn many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?.into_iter().map(canonical).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::DefaultsReportStatus;

    #[test]
    fn a_report_of_an_earlier_release_is_read_with_the_paths_of_this_one() {
        let report = |path: &str| -> DefaultsReportStatus {
            let report = json!({
                "defaults": [{ "path": path }], "dropped": [{ "path": path }], "changed": [{ "path": path }],
                "cleared": [{ "name": "a", "uid": "u", "paths": [path] }],
                "previous": [{ "defaults": [{ "path": path }] }],
            });
            serde_json::from_value(report).expect("a report")
        };
        assert_eq!(report(".spec.pools{}.sizes[]{}"), report(".spec.pools.*.sizes[].*"));
        assert_eq!(report(".spec.pools{}").defaults[0].path, ".spec.pools.*");
        assert_eq!(report("no path {}").defaults[0].path, "no path {}");
    }
}
