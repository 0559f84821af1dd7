//! The schemas that requests are answered by, as one value that changes as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use etch_admission::admission_review::Served;

/// Schemas by the names of their `EmbeddedSchema`.
pub type Schemas = BTreeMap<String, Served>;

/// What is served at present; cheap to clone. A request sees one state of it from its beginning to its end.
#[derive(Clone, Debug, Default)]
pub struct ServedSchemas(Arc<RwLock<Arc<Schemas>>>);

impl ServedSchemas {
    /// What is served now.
    pub fn now(&self) -> Arc<Schemas> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves this from the next request on.
    pub fn set(&self, schemas: Schemas) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(schemas);
    }
}
