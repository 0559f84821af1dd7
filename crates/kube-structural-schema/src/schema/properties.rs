//! The `properties` of a schema, by name.
//! It must not be changed after it was built, so it can be one sorted allocation.

use super::Schema;

/// Schemas by property name, in the order of the names' bytes.
#[derive(Debug, Default)]
pub struct Properties(Box<[(Box<str>, Schema)]>);

impl Properties {
    /// The schema of a property.
    pub fn get(&self, name: &str) -> Option<&Schema> {
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
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Schema)> {
        self.0.iter().map(|(name, schema)| (&**name, schema))
    }

    /// All properties, sorted by name, to change their schemas.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Schema)> {
        self.0.iter_mut().map(|(name, schema)| (&**name, schema))
    }
}

impl FromIterator<(Box<str>, Schema)> for Properties {
    /// Of two schemas with the same name one is kept.
    fn from_iter<I: IntoIterator<Item = (Box<str>, Schema)>>(properties: I) -> Self {
        let mut sorted: Vec<_> = properties.into_iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        sorted.dedup_by(|(a, _), (b, _)| a == b);
        Self(sorted.into_boxed_slice())
    }
}
