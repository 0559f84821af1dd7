//! The schemas that requests are answered by, as one value that changes as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use etch_admission::admission_review::Served;
use parking_lot::RwLock;

/// Schemas by the names of their `EmbeddedSchema`.
pub type Schemas = BTreeMap<String, Served>;

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
