//! The defaults that are published of a type, each with what it takes for it to apply.

use serde_json::Value;

use super::view::View;
use super::{Document, OpenApiError, TypeName};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::DEEPEST;

/// A type with more defaults than this is refused; those of Kubernetes have some hundreds.
const MOST: usize = 1 << 16;

/// One default of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedDefault {
    /// Where it stands.
    pub path: Path,
    /// The default, as it is published.
    pub default: Json,
    /// When it applies.
    pub applies_when: AppliesWhen,
    /// The definition that declares the place.
    pub definition: String,
}

/// What it takes for a default to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppliesWhen {
    /// Nothing: it applies to every object, or to every item of a list that is there.
    Always,
    /// That an optional object or list without a default is given.
    Given(Path),
    /// That a client writes a null: lists have no absent items and maps no absent values.
    Null,
}

impl Document {
    /// The defaults of a type at a place and below; the place is a list of fields, as `kubectl explain` takes
    /// it.
    ///
    /// # Errors
    /// The document is broken.
    pub fn published(&self, of: &TypeName, place: &[String]) -> Result<Vec<PublishedDefault>, OpenApiError> {
        let Some((name, schema)) = self.schema_of(of) else { return Ok(Vec::new()) };
        let mut walk = Walk { document: self, place, above: vec![name], found: Vec::new() };
        walk.below(&self.view(schema)?, &mut Path::root(), None, name)?;
        walk.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk.found)
    }

    /// Whether a type has these fields, one below the other. Items of lists and values of maps are passed
    /// through.
    pub(super) fn has_fields(&self, of: &TypeName, place: &[String]) -> bool {
        let view = |schema| self.view(schema).ok();
        let Some(mut at) = self.schema_of(of).and_then(|(_, schema)| view(schema)) else { return false };
        for field in place {
            let mut passed = 0;
            let found = loop {
                if let Some(property) = at.property(field) {
                    break property;
                }
                // A list of lists of itself has no end.
                let Some(inner) = at.items().or_else(|| at.values()).filter(|_| passed < MOST) else {
                    return false;
                };
                passed += 1;
                let Some(inner) = view(inner) else { return false };
                at = inner;
            };
            let Some(next) = view(found) else { return false };
            at = next;
        }
        true
    }
}

struct Walk<'d, 'p> {
    document: &'d Document,
    place: &'p [String],
    /// The definitions that the place is in: what contains itself is not entered again.
    above: Vec<&'d str>,
    found: Vec<PublishedDefault>,
}

impl<'d> Walk<'d, '_> {
    /// Visits what is below a place; `waits` is the nearest object above that need not be there.
    fn below(
        &mut self,
        view: &View<'d>,
        at: &mut Path,
        waits: Option<&Path>,
        definition: &'d str,
    ) -> Result<(), OpenApiError> {
        for (step, schema) in view.below() {
            let is_required = matches!(&step, Step::Field(name) if view.requires(name));
            at.push(step);
            self.place(schema, at, waits, is_required, definition)?;
            at.pop();
        }
        Ok(())
    }

    fn place(
        &mut self,
        schema: &'d Value,
        at: &mut Path,
        waits: Option<&Path>,
        is_required: bool,
        definition: &'d str,
    ) -> Result<(), OpenApiError> {
        let view = self.document.view(schema)?;
        let is_inner = matches!(at.steps().last(), Some(Step::Items | Step::Values));
        let default = view.default().filter(|_| !is_inner || !view.is_nullable());
        if let Some(default) = default
            && self.is_meant(at)
        {
            let applies_when = match waits {
                _ if is_inner => AppliesWhen::Null,
                Some(waits) => AppliesWhen::Given(waits.clone()),
                None => AppliesWhen::Always,
            };
            if self.found.len() == MOST || at.steps().len() > DEEPEST {
                return Err(OpenApiError::TooLarge);
            }
            let (path, definition) = (at.clone(), definition.to_owned());
            self.found.push(PublishedDefault {
                path,
                default: default.clone().into(),
                applies_when,
                definition,
            });
        }
        let here = (!is_inner && !is_required && default.is_none()).then(|| at.clone());
        let waits = here.as_ref().or(waits);
        let Some(name) = view.name else { return self.below(&view, at, waits, definition) };
        if self.above.contains(&name) {
            return Ok(());
        }
        self.above.push(name);
        let visited = self.below(&view, at, waits, name);
        self.above.pop();
        visited
    }

    fn is_meant(&self, at: &Path) -> bool {
        let mut fields = at.steps().iter().filter_map(|step| match step {
            Step::Field(name) => Some(name),
            _ => None,
        });
        self.place.iter().all(|wanted| fields.next() == Some(wanted))
    }
}
