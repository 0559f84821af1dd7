//! The schemas that requests are answered by, as one value that changes as a whole.
//! It must not compile or read anything.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use etch_admission::Compiled;

/// A schema with its facts.
#[derive(Clone, Debug)]
pub struct Served {
    /// What is declared, made ready.
    pub schema: Arc<Compiled>,
    /// All facts that have a value; see [`Compiled::facts`].
    pub facts: Value,
    /// The names of those that have none. Such a schema is not applied.
    pub missing: Vec<String>,
}

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
