//! The keys that a request's path may begin with, as the operator and the server share them.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use etch_admission::{PathKey, accepted_keys};

/// The keys that are accepted; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AcceptedKeys(Arc<Mutex<accepted_keys::AcceptedKeys>>);

impl AcceptedKeys {
    /// Accepts what the webhook configurations hold now, and for some time what they held before.
    pub fn set(&self, keys: &[PathKey]) {
        self.0.lock().set(keys, Instant::now().into_std());
    }

    /// Accepts for some time what the configurations are about to hold.
    pub fn expect<'k>(&self, keys: impl IntoIterator<Item = &'k PathKey>) {
        self.0.lock().expect(keys, Instant::now().into_std());
    }

    /// Whether a path that begins so comes from an API server.
    pub fn accepts(&self, presented: &str) -> bool {
        self.0.lock().accepts(presented, Instant::now().into_std())
    }
}
