//! The versions of `status.storedVersions` beside the storage version, and the defaults that objects show
//! there.

use kube_structural_schema::compile::Compiled;

use super::{Crd, Elsewhere};

impl Crd {
    /// Whether objects may still be stored at another version than the storage version, by
    /// `status.storedVersions`.
    pub fn stored_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// The versions of `status.storedVersions` but the storage version, in its order.
    pub fn versions_elsewhere(&self) -> impl Iterator<Item = &str> {
        self.elsewhere.iter().map(|elsewhere| elsewhere.version.as_str())
    }

    /// The other versions at which objects may still be stored, with their defaults: an object is read with
    /// those of the version that its bytes are in (fact R2). None if a webhook converts, because nothing
    /// shows what it makes of them.
    pub fn defaults_elsewhere(&self) -> impl Iterator<Item = (&str, &Compiled)> {
        let alike = self.elsewhere.iter().filter(|_| !self.converted_by_webhook);
        alike.filter_map(|elsewhere| Some((elsewhere.version.as_str(), elsewhere.compiled.as_ref()?)))
    }

    /// Whether an object may show defaults that nothing shows to be defaults: those of another version at
    /// which it may be stored, as a webhook has converted them.
    pub fn converts_defaults(&self) -> bool {
        let has_defaults =
            |elsewhere: &Elsewhere| elsewhere.compiled.as_ref().is_none_or(Compiled::has_defaults);
        self.converted_by_webhook && self.elsewhere.iter().any(has_defaults)
    }

    /// Whether an object may show a default that etcd lacks: one of the storage version, or one of another
    /// version at which it may be stored (fact R2).
    pub fn gives_defaults(&self) -> bool {
        let gives_elsewhere = || self.defaults_elsewhere().any(|(_, compiled)| compiled.has_defaults());
        self.compiled.has_defaults() || self.converts_defaults() || gives_elsewhere()
    }

    /// What a pass is about: the digest of the storage version's defaults. Where it has none, those of other
    /// versions count, for a pass before they were there has left each object at its version.
    pub fn digest(&self) -> String {
        let mut digest = self.compiled.digest().to_string();
        if !self.compiled.has_defaults() && self.gives_defaults() {
            for Elsewhere { version, compiled } in &self.elsewhere {
                let defaults = compiled.as_ref().map(|compiled| compiled.digest().to_string());
                digest.push_str(&format!("+{version}:{}", defaults.unwrap_or_default()));
            }
        }
        digest
    }
}
