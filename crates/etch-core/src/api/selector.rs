//! Which CRDs a policy selects, and how specifically.
//! Matching takes names and labels only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wildcard::matches;

/// Selects CRDs. All fields that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.groups) || self.groups.all(p, p.matches('^[a-z0-9.*-]+$'))",
        "message": "groups must be API groups in lower case, such as cert-manager.io or *.example.com; * \
            alone matches all",
        "fieldPath": ".groups",
    },
    {
        "rule": "!has(self.names) || self.names.all(p, p.matches('^[a-z0-9.*-]+$') && (p.contains('.') || \
            p.contains('*')))",
        "message": "names must be names of CRDs, which end in their group: certificates.cert-manager.io, or \
            certificates.*",
        "fieldPath": ".names",
    },
    {
        "rule": "!has(self.exclude) || self.exclude.all(p, p.matches('^[a-z0-9.*-]+$') && (p.contains('.') \
            || p.contains('*')))",
        "message": "exclude must be names of CRDs, which end in their group: certificates.cert-manager.io, \
            or certificates.*",
        "fieldPath": ".exclude",
    },
    {
        "rule": "!has(self.names) || !has(self.exclude) || !self.names.exists(p, p in self.exclude)",
        "message": "a name cannot be both in names and in exclude",
    },
]))]
pub struct CrdSelector {
    /// API groups; `*` matches any characters. All groups if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub groups: Vec<String>,
    /// CRD names (`crontabs.stable.example.com`); `*` matches any characters. All names if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
    /// Labels that the CRD must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// CRD names to exclude even if the policy selects them; `*` matches any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub exclude: Vec<String>,
}

impl CrdSelector {
    /// How specifically this selects a CRD; none if it does not. A higher number wins.
    ///
    /// Names are compared first (an exact one, a pattern, none), then labels (some, none), then groups as
    /// names are.
    pub fn weight(&self, name: &str, group: &str, labels: &BTreeMap<String, String>) -> Option<u32> {
        if self.exclude.iter().any(|pattern| matches(pattern, name)) {
            return None;
        }
        if !self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value)) {
            return None;
        }
        let names = best(&self.names, name)?;
        let groups = best(&self.groups, group)?;
        let labels = u32::from(!self.match_labels.is_empty());
        Some(names * 27 + labels * 9 + groups)
    }
}

/// 0 for no pattern at all, 1 for one with `*`, 2 for the exact text; none if no pattern matches.
fn best(patterns: &[String], text: &str) -> Option<u32> {
    if patterns.is_empty() {
        return Some(0);
    }
    let matching = patterns.iter().filter(|pattern| matches(pattern, text));
    matching.map(|pattern| if pattern.contains('*') { 1 } else { 2 }).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(selector: &str) -> Option<u32> {
        let selector: CrdSelector = serde_json::from_str(selector).expect("a selector");
        let labels = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        selector.weight("crontabs.stable.example.com", "stable.example.com", &labels)
    }

    #[test]
    fn everything_given_must_hold() {
        for selector in [
            "{}",
            r#"{"groups": ["*.example.com"]}"#,
            r#"{"names": ["x", "cron*.stable.*.com"]}"#,
            r#"{"matchLabels": {"tier": "gold"}}"#,
        ] {
            assert!(weight(selector).is_some(), "{selector}");
        }
        for selector in [
            r#"{"groups": ["example.com"]}"#,
            r#"{"names": ["crontabs"]}"#,
            r#"{"names": ["crontabs.*"], "groups": ["other.io"]}"#,
            r#"{"matchLabels": {"tier": "iron"}}"#,
            r#"{"exclude": ["crontabs.*"]}"#,
        ] {
            assert_eq!(weight(selector), None, "{selector}");
        }
    }

    #[test]
    fn the_more_specific_selector_weighs_more() {
        let order = [
            "{}",
            r#"{"groups": ["*.example.com"]}"#,
            r#"{"groups": ["stable.example.com"]}"#,
            r#"{"matchLabels": {"tier": "gold"}}"#,
            r#"{"names": ["crontabs.*"]}"#,
            r#"{"names": ["crontabs.stable.example.com"]}"#,
        ];
        let weights: Vec<_> = order.iter().map(|selector| weight(selector)).collect();
        assert!(weights.is_sorted_by(|a, b| a < b), "{weights:?}");
    }
}
