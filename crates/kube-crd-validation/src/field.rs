//! A place while walking, in the API server's spelling.
//! It cannot be parsed back: a name may hold anything.

use std::fmt;

use kube_structural_schema::schema::Schema;

/// apimachinery's `field.Path` as one text that grows and shrinks with the walk. Empty is Go's nil path.
#[derive(Clone, Debug, Default)]
pub(super) struct Field(String);

/// Where to come back to.
#[derive(Clone, Copy)]
#[must_use]
pub(super) struct Mark(usize);

impl Mark {
    /// How long the place was.
    pub(super) fn start(self) -> usize {
        self.0
    }
}

impl Field {
    pub(super) fn new(place: &str) -> Self {
        Self(place.to_owned())
    }

    /// Goes down to `here.name`. A nameless child is written like an index without a number.
    pub(super) fn child(&mut self, name: &str) -> Mark {
        let mark = Mark(self.0.len());
        if name.is_empty() {
            self.0.push_str("[]");
            return mark;
        }
        if mark.0 > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        mark
    }

    /// Goes down to `here[key]`.
    pub(super) fn key(&mut self, key: &str) -> Mark {
        let mark = Mark(self.0.len());
        self.0.extend(["[", key, "]"]);
        mark
    }

    /// Goes down to `here[0]`.
    pub(super) fn index(&mut self, index: usize) -> Mark {
        self.key(&index.to_string())
    }

    /// Goes down to a property, as a child, or to the value of a map, by its key; nothing where the schema
    /// has neither.
    pub(super) fn below<'s>(&mut self, schema: &'s Schema, name: &str) -> Option<(&'s Schema, Mark)> {
        match schema.properties.get(name) {
            Some(property) => Some((property, self.child(name))),
            None => schema.additional_schema().map(|additional| (additional, self.key(name))),
        }
    }

    /// The place of something below, as text; the name is taken as it is.
    pub(super) fn with(&self, below: &str) -> String {
        if self.0.is_empty() { below.to_owned() } else { format!("{}.{below}", self.0) }
    }

    /// The beginning of the place, so long.
    pub(super) fn up_to(&self, end: usize) -> &str {
        &self.0[..end]
    }

    /// Goes back up.
    pub(super) fn back(&mut self, mark: Mark) {
        self.0.truncate(mark.0);
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_in_go() {
        let mut field = Field::default();
        assert_eq!(field.to_string(), "<nil>");
        let root = field.child("spec");
        let ports = field.child("ports");
        let _ = field.index(3);
        let _ = field.key("a.b");
        let _ = field.child("");
        assert_eq!(field.to_string(), "spec.ports[3][a.b][]");
        field.back(ports);
        assert_eq!(field.to_string(), "spec");
        field.back(root);
        let _ = field.key("a");
        assert_eq!(field.to_string(), "[a]");
    }
}
