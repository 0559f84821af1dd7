//! The approval of APIs in the groups that belong to Kubernetes.
//!
//! Source: apiextensions-apiserver `pkg/apihelpers/helpers.go`, and `validateAPIApproval`.

use super::document::Crd;
use super::report::Report;
use go_text::url::Url;

const ANNOTATION: &str = "api-approved.kubernetes.io";

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// Checks the annotation of a CRD. An update that leaves it in its state is not refused.
pub(super) fn check(crd: &Crd<'_>, old: Option<&Crd<'_>>, report: &mut Report) {
    if !is_protected(crd.spec.group) {
        return;
    }
    let state = state(crd.annotation(ANNOTATION));
    if old.is_some_and(|old| self::state(old.annotation(ANNOTATION)) == state) {
        return;
    }
    let at = format!("metadata.annotations[{ANNOTATION}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    match state {
        State::Missing => report.required(at, format!("{must}, {see}")),
        State::Invalid => {
            let detail = format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
            report.invalid(at, detail);
        }
        State::Approved | State::Bypassed => {}
    }
}

fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|own| group.strip_suffix(own).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}

fn state(annotation: &str) -> State {
    if annotation.is_empty() {
        return State::Missing;
    }
    if annotation.starts_with("unapproved") {
        return State::Bypassed;
    }
    match Url::parse_request_uri(annotation) {
        Ok(url) if !url.host().is_empty() && !url.scheme().is_empty() => State::Approved,
        _ => State::Invalid,
    }
}
