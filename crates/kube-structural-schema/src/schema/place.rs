//! A place in a CRD or an object, written the way the API server's error lists write it.
//! The form of [`crate::path`] is another.

use std::fmt;

/// A place while walking, as a list through the stack frames; `Display` is apimachinery's
/// `field.Path.String()`.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Child(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// Where a walk starts: `openAPIV3Schema`, or a longer text that is taken as it is. An empty one is left
    /// out.
    pub fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Child(name) }
    }

    /// `here.name`
    pub fn child(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Child(name) }
    }

    /// `here[key]`, without quotes
    pub fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    /// `here[0]`
    pub fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(place) = at {
            steps.push(place.step);
            at = place.parent;
        }
        let mut begun = false;
        for step in steps.iter().rev() {
            match step {
                Step::Child(name) if begun => write!(f, ".{name}")?,
                Step::Child(name) => f.write_str(name)?,
                Step::Key(key) => write!(f, "[{key}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            begun |= !matches!(step, Step::Child(""));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_places_as_the_server_does() {
        let root = Place::root("openAPIV3Schema");
        let properties = root.child("properties");
        let spec = properties.key("a.b");
        let clauses = spec.child("allOf");
        assert_eq!(clauses.index(2).to_string(), "openAPIV3Schema.properties[a.b].allOf[2]");
        assert_eq!(Place::root("").child("metadata").to_string(), "metadata");
        assert_eq!(Place::root("").key("a").child("").to_string(), "[a].");
    }
}
