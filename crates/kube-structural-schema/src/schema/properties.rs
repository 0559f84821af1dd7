//! The `properties` of a schema, sorted by name.

use std::sync::Arc;

/// Schemas by property name, in the order of the names' bytes.
#[derive(Debug)]
pub struct Properties<T>(pub(super) Arc<[(Box<str>, Arc<T>)]>);

impl<T> Properties<T> {
    /// The schema of a property.
    pub fn get(&self, name: &str) -> Option<&T> {
        let index = self.0.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        Some(&self.0[index].1)
    }

    /// Whether a property is named.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether no property is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All properties, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, schema)| (&**name, &**schema))
    }
}

impl<T> Default for Properties<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> FromIterator<(Box<str>, T)> for Properties<T> {
    /// Of two schemas with the same name one is kept.
    fn from_iter<I: IntoIterator<Item = (Box<str>, T)>>(properties: I) -> Self {
        let mut sorted: Vec<_> = properties.into_iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        sorted.dedup_by(|(a, _), (b, _)| a == b);
        Self(sorted.into_iter().map(|(name, schema)| (name, Arc::new(schema))).collect())
    }
}
