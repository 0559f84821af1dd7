//! `status.storedVersions`: the versions in which objects may lie in etcd.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceDefinitionStoredVersions`.

use super::document::Crd;
use super::report::Report;

const AT: &str = "status.storedVersions";

pub(super) fn check(crd: &Crd<'_>, report: &mut Report) {
    let stored = &crd.stored_versions;
    if stored.is_empty() {
        return report.invalid(AT, "must have at least one stored version");
    }
    let versions = &crd.spec.versions;
    for (index, version) in versions.iter().enumerate() {
        // A name that was there before is struck off already.
        let listed = stored.contains(&version.name)
            && !versions[..index].iter().any(|before| before.name == version.name);
        if version.storage && !listed {
            report.invalid(AT, format!("must have the storage version {}", version.name));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let last = !stored[index + 1..].contains(name);
        if last && !versions.iter().any(|version| version.name == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and \
                 removes {name} from status.storedVersions"
            );
            report.invalid(format!("{AT}[{index}]"), detail);
        }
    }
}
