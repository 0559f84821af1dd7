//! Whether a replica could do its work, or take it over.
//! It must not go by the process being up: that is what `/livez` is for.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a replica knows of its cluster and of its place in it. It is ready once it knows both.
#[derive(Debug, Default)]
pub struct Readiness {
    lease: AtomicBool,
    crds: AtomicBool,
}

impl Readiness {
    /// Says that it is known who leads, this process or another.
    pub fn knows_the_leader(&self) {
        self.lease.store(true, Ordering::Relaxed);
    }

    /// Says whether the CRDs have been listed: all of them by who leads, and any by who waits, which shows that it could.
    pub fn set_listed(&self, listed: bool) {
        self.crds.store(listed, Ordering::Relaxed);
    }

    /// What is not known yet, in a line; none if it is ready.
    pub fn lacks(&self) -> Option<&'static str> {
        if !self.lease.load(Ordering::Relaxed) {
            return Some("it is not known yet who holds the Lease\n");
        }
        (!self.crds.load(Ordering::Relaxed)).then_some("the CRDs have not been listed yet\n")
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
}
