//! What the API server of a cluster answers to a CRD that is applied in a dry run.

use etch_core::refusal::Refusal;
use etch_core::upgrade::digest_of_refusal;
use kube_structural_schema::json::Json;

/// What the API server of a cluster answers to the CRD in a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// No cluster was asked.
    #[default]
    NotAsked,
    /// It accepts the CRD; nothing is different from the one that it has.
    SameAsInstalled,
    /// It accepts the CRD.
    Accepted {
        /// Whether other field managers own fields that change.
        conflicts: bool,
    },
    /// It, or a webhook, refuses the CRD in these words.
    Refused(String),
    /// Etch's guard refuses the CRD.
    Guarded {
        /// Who refuses it.
        refusal: String,
        /// The value of the annotation that allows exactly this upgrade.
        digest: String,
        /// Whether other field managers own fields that change.
        conflicts: bool,
    },
    /// It could not be asked, for this reason.
    Failed(String),
}

impl DryRun {
    /// The answer is a CRD, after a conflict of owners or without one. `present` is the one that is there.
    pub fn answered(present: Option<&Json>, answer: &Json, conflicts: bool) -> Self {
        match present.is_some_and(|present| is_unchanged(present, answer)) {
            true => Self::SameAsInstalled,
            false => Self::Accepted { conflicts },
        }
    }

    /// The CRD is refused, after a conflict of owners or without one.
    pub fn refused(refusal: &Refusal, conflicts: bool) -> Self {
        if let Some(digest) = digest_of_refusal(refusal) {
            return Self::Guarded { refusal: refusal.to_string(), digest: digest.to_owned(), conflicts };
        }
        match matches!(refusal.code, 400 | 422) || refusal.refused_by().is_some() {
            true => {
                let fields = refusal.fields.iter().map(|field| format!("; {field}"));
                Self::Refused(format!("{refusal}{}", fields.collect::<String>()))
            }
            false => Self::Failed(refusal.to_string()),
        }
    }
}

/// Whether the answer to a dry run is the CRD that is there. Labels and annotations do not count in its
/// generation.
fn is_unchanged(present: &Json, answer: &Json) -> bool {
    let has_generation = present["metadata"]["generation"].is_i64();
    let is_same = |field| present["metadata"][field] == answer["metadata"][field];
    has_generation && ["generation", "labels", "annotations"].into_iter().all(is_same)
}

/// The CRD as kubectl applies it: without what belongs to the server.
pub fn applicable(crd: &Json) -> Json {
    let mut crd = crd.clone();
    if let Some(fields) = crd.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = crd["metadata"].as_object_mut() {
        for name in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
            metadata.remove(name);
        }
    }
    crd
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_label_is_a_change() {
        let crd = |generation: u64, labels: Value| {
            Json::from(
                json!({ "metadata": { "generation": generation, "labels": labels, "resourceVersion": "7" } }),
            )
        };
        let present = crd(1, json!({ "a": "b" }));
        let mut answer = present.clone();
        answer["metadata"]["resourceVersion"] = "8".into();
        assert!(is_unchanged(&present, &answer));
        assert!(!is_unchanged(&present, &crd(2, json!({ "a": "b" }))));
        assert!(!is_unchanged(&present, &crd(1, json!({ "a": "c" }))));
        assert!(!is_unchanged(&present, &crd(1, json!(null))));
    }
}
