//! An object as a server with these types would read it: unknown fields and unwanted nulls dropped, defaults
//! filled in.
//!
//! Source: the semantics are those of custom resources (`kube_structural_schema::defaults`), which Go's
//! decoding of built-in types agrees with as far as it goes.

use serde_json::{Map, Value};

use super::view::View;
use super::{Document, OpenApiError, TypeName};
use kube_structural_schema::json::{Json, narrow};
use kube_structural_schema::path::{Trail, TrailStep};

/// More defaults than this in one object are taken for endless.
const MOST: usize = 1 << 20;

impl Document {
    /// Reads an object of one of the document's types and reports the topmost fields that the type does not
    /// know. False where the document does not describe the type; the object is then as it was.
    ///
    /// # Errors
    /// The document is broken; the object is then half way.
    pub fn fill(
        &self,
        object: &mut Value,
        name: &TypeName,
        dropped: &mut dyn FnMut(&Trail<'_>),
    ) -> Result<bool, OpenApiError> {
        let Some((_, schema)) = self.schema_of(name) else { return Ok(false) };
        narrow(object);
        let mut filling = Filling { document: self, dropped, inserted: Vec::new(), count: 0 };
        filling.value(object, &self.view(schema)?, &Trail::ROOT)?;
        Ok(true)
    }
}

struct Filling<'d, 'r> {
    document: &'d Document,
    dropped: &'r mut dyn FnMut(&Trail<'_>),
    /// The types whose default is being filled in; one that comes again would never end.
    inserted: Vec<&'d str>,
    count: usize,
}

type Filled = Result<(), OpenApiError>;

impl<'d> Filling<'d, '_> {
    fn value(&mut self, value: &mut Value, view: &View<'d>, at: &Trail<'_>) -> Filled {
        match value {
            Value::Object(fields) => self.object(fields, view, at),
            Value::Array(items) => {
                let Some(schema) = view.items() else { return Ok(()) };
                let view = self.document.view(schema)?;
                for (index, item) in items.iter_mut().enumerate() {
                    self.present(item, &view, &at.join(TrailStep::Index(index)))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>, view: &View<'d>, at: &Trail<'_>) -> Filled {
        let (properties, values) = (view.properties(), view.values());
        // A type that declares none, such as `RawExtension` or `FieldsV1`, may have any.
        if properties.is_none() && values.is_none() {
            return Ok(());
        }
        let properties = properties.unwrap_or_default();
        let others = values.or_else(|| view.keeps_others().then_some(&Value::Null));
        let schema_of = |name: &str| properties.get(name).copied().or(others);
        let unknown: Vec<String> = fields.keys().filter(|name| schema_of(name).is_none()).cloned().collect();
        for name in unknown {
            (self.dropped)(&at.join(TrailStep::Field(&name)));
            drop(fields.remove(&name).map(Json::from));
        }
        let mut unwanted = Vec::new();
        for (name, value) in fields.iter_mut() {
            let Some(schema) = schema_of(name) else { continue };
            let view = self.document.view(schema)?;
            let is_declared = properties.contains_key(name.as_str());
            // A schema that is null keeps nulls as well.
            if value.is_null() && view.default().is_none() && !view.is_nullable() && !schema.is_null() {
                unwanted.push(name.clone());
                continue;
            }
            let step = if is_declared { TrailStep::Field(name) } else { TrailStep::Key(name) };
            self.present(value, &view, &at.join(step))?;
        }
        for name in unwanted {
            fields.remove(&name);
        }
        for (name, schema) in properties {
            if !fields.contains_key(name) {
                let view = self.document.view(schema)?;
                if let Some(default) = view.default() {
                    let value = self.default(default, &view, &at.join(TrailStep::Field(name)))?;
                    fields.insert(name.to_owned(), value.into_inner());
                }
            }
        }
        Ok(())
    }

    /// A value that is there, even a null that a default replaces.
    fn present(&mut self, value: &mut Value, view: &View<'d>, at: &Trail<'_>) -> Filled {
        if value.is_null()
            && !view.is_nullable()
            && let Some(default) = view.default()
        {
            *value = self.default(default, view, at)?.into_inner();
            return Ok(());
        }
        self.value(value, view, at)
    }

    /// A default with the defaults below it.
    fn default(&mut self, default: &Value, view: &View<'d>, at: &Trail<'_>) -> Result<Json, OpenApiError> {
        self.count += 1;
        let mut value = Json::from(default.clone());
        let Some(name) = view.name else {
            self.value(&mut value, view, at)?;
            return Ok(value);
        };
        if self.inserted.contains(&name) || self.count > MOST {
            return Err(OpenApiError::Endless(name.to_owned()));
        }
        self.inserted.push(name);
        let filled = self.value(&mut value, view, at);
        self.inserted.pop();
        filled.map(|()| value)
    }
}
