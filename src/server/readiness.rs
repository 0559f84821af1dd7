//! Whether a replica can work, or take over.
//! Whether the process is up is for `/livez` to show.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::tasks::Tasks;

/// What a replica knows about its cluster and its place in it. It is ready once it knows both.
#[derive(Debug, Default)]
pub struct Readiness {
    lease: AtomicBool,
    crds: AtomicBool,
    /// Whether admission is served here, and then whether there is something to serve it by.
    admission: AtomicBool,
    schemas: AtomicBool,
    keys: AtomicBool,
    certificate: AtomicBool,
    ending: AtomicBool,
    tasks: Tasks,
}

impl Readiness {
    /// The tasks without which this replica cannot work.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Records that it is known who leads, this process or another.
    pub fn knows_the_leader(&self) {
        self.lease.store(true, Ordering::Relaxed);
    }

    /// Records whether the CRDs have been listed: all of them by a leader; any by a standby, which shows that
    /// it could.
    pub fn set_listed(&self, listed: bool) {
        self.crds.store(listed, Ordering::Relaxed);
    }

    /// Records that this replica is to serve admission, and is not ready before it can.
    pub fn serves_admission(&self) {
        self.admission.store(true, Ordering::Relaxed);
    }

    /// Records that the EmbeddedSchemas are known.
    pub fn knows_the_schemas(&self) {
        self.schemas.store(true, Ordering::Relaxed);
    }

    /// Records that the keys of API servers are known.
    pub fn knows_the_keys(&self) {
        self.keys.store(true, Ordering::Relaxed);
    }

    /// Records that there is a certificate.
    pub fn has_a_certificate(&self) {
        self.certificate.store(true, Ordering::Relaxed);
    }

    /// Records that the process is shutting down, so clients send nothing new.
    pub fn ends(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// What is not known yet, in a line; `None` if it is ready.
    pub fn lacks(&self) -> Option<&'static str> {
        if self.ending.load(Ordering::Relaxed) {
            return Some("the process is shutting down\n");
        }
        if !self.lease.load(Ordering::Relaxed) {
            return Some("the holder of the Lease is not known yet\n");
        }
        if !self.crds.load(Ordering::Relaxed) {
            return Some("Etch has not listed the CRDs and policies yet\n");
        }
        if !self.admission.load(Ordering::Relaxed) {
            return None;
        }
        if !self.schemas.load(Ordering::Relaxed) {
            return Some("Etch has not listed the EmbeddedSchemas yet\n");
        }
        if !self.keys.load(Ordering::Relaxed) {
            return Some("Etch has not listed its webhook configurations yet\n");
        }
        (!self.certificate.load(Ordering::Relaxed)).then_some("there is no admission certificate yet\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Readiness;

    #[test]
    fn both_are_needed() {
        let ready = Readiness::default();
        assert!(ready.lacks().is_some_and(|what| what.contains("Lease")));
        ready.knows_the_leader();
        assert!(ready.lacks().is_some_and(|what| what.contains("CRDs")));
        ready.set_listed(true);
        assert_eq!(ready.lacks(), None);
        ready.set_listed(false);
        assert!(ready.lacks().is_some());
    }

    #[test]
    fn admission_needs_schemas_and_a_certificate_until_the_end() {
        let ready = Readiness::default();
        ready.knows_the_leader();
        ready.set_listed(true);
        ready.serves_admission();
        assert!(ready.lacks().is_some_and(|what| what.contains("EmbeddedSchemas")));
        ready.knows_the_schemas();
        assert!(ready.lacks().is_some_and(|what| what.contains("webhook configurations")));
        ready.knows_the_keys();
        assert!(ready.lacks().is_some_and(|what| what.contains("certificate")));
        ready.has_a_certificate();
        assert_eq!(ready.lacks(), None);
        ready.ends();
        assert!(ready.lacks().is_some());
    }
}
