//! `DefaultsPolicy`: which CRDs Etch cares for, and how.
//! It must not read CRDs itself: matching takes names and labels.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use std::collections::BTreeMap;
use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{ChangeRule, followed};
use crate::domain::path::Path;
use crate::domain::plan::{HiddenFields, Ownership, Terms};

/// Says which CRDs Etch cares for, and how. A CRD that no policy selects is left alone.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "etch-operator.io",
    version = "v1alpha1",
    kind = "DefaultsPolicy",
    plural = "defaultspolicies",
    shortname = "dpol",
    category = "etch",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "Ownership", type_ = "string", json_path = ".spec.ownership", priority = 1),
    printcolumn(name = "Hidden", type_ = "string", json_path = ".spec.hiddenFields", priority = 1),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsPolicySpec {
    /// Which CRDs this policy is for; all of them if it is empty.
    #[serde(default)]
    pub selector: CrdSelector,
    /// What is done for their objects: `Persist` (the default), `Audit` or `Ignore`.
    pub mode: Option<Mode>,
    /// Whether stored defaults become fields of the manager `etch`: `None` (the default) or `Own`.
    pub ownership: Option<OwnershipPolicy>,
    /// What is done about objects that hold fields which the schema no longer knows: `Hold` (the default) or `Drop`.
    pub hidden_fields: Option<HiddenFieldsPolicy>,
    /// How long a changed schema must stand before objects are written, such as `10s` or `24h`. The operator's `--settle`
    /// applies if this is not set.
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h|d))+$"))]
    pub settle: Option<String>,
    /// At most this many writes per second for each CRD of this policy.
    #[schemars(range(min = 1))]
    pub max_writes_per_second: Option<u32>,
    /// Stop a CRD's pass after this many objects were rejected.
    #[schemars(range(min = 1))]
    pub stop_after_rejected: Option<u32>,
    /// Stop writing for the CRDs of this policy until this is taken back.
    pub paused: Option<bool>,
    /// What is done when a default changes or is taken back. Values of defaults that are not named here stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 200),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"])
    )]
    pub on_change: Vec<ChangeRule>,
}

/// Which CRDs a policy is for. Everything that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdSelector {
    /// API groups, `*` standing for any run of characters. All groups if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// CRD names (`crontabs.stable.example.com`), `*` standing for any run of characters. All names if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Labels that the CRD must carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// CRD names that are left out even if they are selected, `*` standing for any run of characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// What is done for the objects of a CRD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Defaults are stored.
    #[default]
    Persist,
    /// Everything is computed and reported, nothing is written to objects.
    Audit,
    /// Nothing is done.
    Ignore,
}

/// Who owns stored defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OwnershipPolicy {
    /// Nobody.
    #[default]
    None,
    /// The manager `etch`.
    Own,
}

/// What is done about objects with hidden fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HiddenFieldsPolicy {
    /// They are left alone and reported.
    #[default]
    Hold,
    /// They are written, which destroys the hidden fields.
    Drop,
}

/// A policy's word for one CRD, with everything that it leaves open filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policy's name.
    pub policy: String,
    /// What is done.
    pub mode: Mode,
    /// What writes may do.
    pub terms: Terms,
    /// How long a changed schema must stand first.
    pub settle: Duration,
    /// Writes per second; none for no limit of its own.
    pub max_writes_per_second: Option<u32>,
    /// Rejections after which a pass stops; none for never.
    pub stop_after_rejected: Option<u32>,
    /// Whether writing is stopped for now.
    pub paused: bool,
    /// The places of defaults whose changes are followed.
    pub follow: Vec<Path>,
}

impl CrdSelector {
    /// How specifically this selects a CRD; none if it does not. A higher number wins.
    ///
    /// A name without `*` counts most, then a name with `*`, labels, a group without `*`, a group with `*`.
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

impl DefaultsPolicySpec {
    /// What this policy says for a CRD that it selects; `settle` is the operator's own.
    ///
    /// A `settle` that cannot be read counts as the operator's: the CRD's schema refuses it before it gets here.
    pub fn settings(&self, policy: &str, settle: Duration) -> Settings {
        Settings {
            policy: policy.to_owned(),
            mode: self.mode.unwrap_or_default(),
            terms: Terms {
                ownership: match self.ownership.unwrap_or_default() {
                    OwnershipPolicy::None => Ownership::None,
                    OwnershipPolicy::Own => Ownership::Own,
                },
                hidden_fields: match self.hidden_fields.unwrap_or_default() {
                    HiddenFieldsPolicy::Hold => HiddenFields::Hold,
                    HiddenFieldsPolicy::Drop => HiddenFields::Drop,
                },
            },
            settle: self
                .settle
                .as_deref()
                .and_then(|text| humantime::parse_duration(text).ok())
                .unwrap_or(settle),
            max_writes_per_second: self.max_writes_per_second,
            stop_after_rejected: self.stop_after_rejected,
            paused: self.paused.unwrap_or_default(),
            follow: followed(&self.on_change),
        }
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

/// Whether a text matches a pattern in which `*` stands for any run of characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(head) else { return false };
    rest.char_indices().map(|(index, _)| index).chain([rest.len()]).any(|index| matches(tail, &rest[index..]))
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
