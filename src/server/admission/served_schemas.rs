//! The schemas that requests are answered by, as one value that changes as a whole.

use std::sync::Arc;

use parking_lot::RwLock;

use etch_admission::state::Schemas;

/// What is served at present; cheap to clone. A request sees one state of it from its beginning to its end.
#[derive(Clone, Debug, Default)]
pub struct ServedSchemas(Arc<RwLock<Arc<Schemas>>>);

impl ServedSchemas {
    /// What is served now.
    pub fn now(&self) -> Arc<Schemas> {
        self.0.read().clone()
    }

    /// Serves this from the next request on.
    pub fn set(&self, schemas: Schemas) {
        *self.0.write() = Arc::new(schemas);
    }
}
