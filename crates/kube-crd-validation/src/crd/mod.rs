//! Whole CRDs: what the API server answers when one is created or updated.
//!
//! A CRD goes the server's way: it is decoded from `apiextensions.k8s.io/v1` (`document`, `props`), with what
//! all versions share moved to the top, as the server's own places show; then `spec` and the modules below it
//! check it. An update is compared with the CRD before it, whose faults may stay (`options`).
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation`.

mod approval;
mod budget;
mod ca_bundle;
mod columns;
mod conversion;
mod document;
mod json_path;
mod keywords;
mod lists;
mod malformed;
mod names;
mod object_meta;
mod options;
mod props;
mod ratchet;
mod read;
mod release;
mod report;
mod rules;
mod scope;
mod selectable;
mod spec;
mod standing;
mod stored;
mod validation;
mod walk;

use serde_json::Value;

use kube_structural_schema::finding::Finding;

use document::Crd;
use options::Options;
use report::Report;

pub use malformed::Malformed;
pub use release::Release;

/// The errors of the newest release for a CRD that is created: none if it accepts the CRD.
///
/// # Errors
/// The server cannot decode it.
pub fn validate_create(crd: &Value) -> Result<Vec<Finding>, Malformed> {
    validate_create_on(Release::NEWEST, crd)
}

/// The errors of the newest release for a CRD that replaces another: none if it accepts the CRD.
///
/// Of `status` only the one before counts, as on the server: the versions it names as stored, and whether it
/// is established. Without one its storage version is taken for stored, and names are not yet fixed.
///
/// # Errors
/// The server cannot decode one of them.
pub fn validate_update(crd: &Value, old: &Value) -> Result<Vec<Finding>, Malformed> {
    validate_update_on(Release::NEWEST, crd, old)
}

/// [`validate_create`] on a release.
///
/// # Errors
/// The server cannot decode it.
pub fn validate_create_on(release: Release, crd: &Value) -> Result<Vec<Finding>, Malformed> {
    let mut crd = Crd::read(crd)?;
    crd.clear_status();
    crd.store();
    let mut report = Report::default();
    object_meta::check_create(&crd, &mut report);
    spec::check(&crd.spec, &Options::strict(release.minor()), &mut report);
    stored::check(&crd, &mut report);
    approval::check(&crd, None, &mut report);
    preserve_unknown_fields(&crd, None, &mut report);
    Ok(report.0)
}

/// [`validate_update`] on a release.
///
/// # Errors
/// The server cannot decode one of them.
pub fn validate_update_on(release: Release, crd: &Value, old: &Value) -> Result<Vec<Finding>, Malformed> {
    let (mut crd, mut old) = (Crd::read(crd)?, Crd::read(old)?);
    if old.stored_versions.is_empty() {
        old.store();
    }
    crd.take_status(&mut old);
    crd.store();
    let mut report = Report::default();
    let options = ratchet::options(&crd, &old, release.minor());
    object_meta::check_update(&crd, &old, &mut report);
    spec::check(&crd.spec, &options, &mut report);
    spec::check_update(&crd.spec, &old.spec, &options, &mut report);
    names::check(&crd.accepted_names, "status.acceptedNames", &mut report);
    stored::check(&crd, &mut report);
    approval::check(&crd, Some(&old), &mut report);
    preserve_unknown_fields(&crd, Some(&old), &mut report);
    Ok(report.0)
}

fn preserve_unknown_fields(crd: &Crd<'_>, old: Option<&Crd<'_>>, report: &mut Report) {
    if crd.spec.preserve_unknown_fields && !old.is_some_and(|old| old.spec.preserve_unknown_fields) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
            spec.versions[*].schema instead";
        report.invalid("spec.preserveUnknownFields", detail);
    }
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
