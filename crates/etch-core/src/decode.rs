//! From the bytes in etcd to the view at the storage version, at whatever version they are stored. The answer
//! of a conversion webhook is not guessed: such an object stays at its own version.

use serde_json::Value;

use crate::crd::{Crd, Version};
use crate::field::place_in;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::meta::dropped;
use kube_structural_schema::defaults::{ReadError, hand_over, hand_over_preserving, read, read_preserving};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Trail};

/// A CRD with the defaults of all its versions, ready for decoding many objects.
#[derive(Debug)]
pub struct Decoder<'a> {
    crd: &'a Crd,
    versions: Vec<(&'a Version, Compiled)>,
}

/// What a reader sees.
#[derive(Debug)]
pub struct View {
    /// The object; at the storage version, unless a webhook would have to convert it.
    pub object: Json,
    /// The topmost fields that etcd holds and the view does not show, in order.
    pub hidden: Vec<Path>,
}

/// Why an object cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Undecodable {
    /// The CRD does not have the version, or no longer.
    #[error("stored at {0}, which the CRD does not have")]
    VersionGone(String),
    /// The server would answer with an error.
    #[error("its metadata, or a default of the schema, cannot be read")]
    Malformed,
    /// The metadata, or the type, of an embedded resource is none (fact R15). This is its place in the
    /// schema.
    #[error("{0} of an embedded resource is malformed, which makes every list of the resource fail")]
    Embedded(Path),
}

impl<'a> Decoder<'a> {
    /// A decoder for the objects of a CRD.
    pub fn new(crd: &'a Crd) -> Self {
        let versions = crd.versions().iter().map(|version| (version, Compiled::new(&version.schema)));
        Self { crd, versions: versions.collect() }
    }

    /// The defaults of a version; `None` if the CRD does not have it.
    pub fn compiled(&self, version: &str) -> Option<&Compiled> {
        self.versions.iter().find(|(known, _)| known.name == version).map(|(_, compiled)| compiled)
    }

    /// What a reader sees of an object that is stored at `version`.
    ///
    /// It is read by the schema and the defaults of that version (fact R2), and handed over to the storage
    /// version (fact R16). Conversion renames nothing.
    ///
    /// # Errors
    /// See [`Undecodable`].
    pub fn view(&self, stored: &Value, version: &str) -> Result<View, Undecodable> {
        let (at, compiled) = self
            .versions
            .iter()
            .find(|(known, _)| known.name == version)
            .ok_or_else(|| Undecodable::VersionGone(version.to_owned()))?;
        let mut object = Json::from(stored.clone());
        let mut hidden = Vec::new();
        let mut hide = |trail: &Trail<'_>| hidden.push(trail.to_path());
        let keeps_all = self.crd.preserves_unknown_fields();
        let read = match keeps_all {
            true => read_preserving(&mut object, &at.schema, compiled),
            false => read(&mut object, &at.schema, compiled, &mut hide),
        };
        read.map_err(|_| Undecodable::Malformed)?;
        dropped(stored, &object, &at.schema, &Trail::ROOT, &mut hide);
        if self.crd.names_fields_alike(version) {
            let schema = &self.crd.storage().schema;
            let handed_over = match keeps_all {
                true => hand_over_preserving(&mut object, schema),
                false => hand_over(&mut object, schema, self.crd.compiled(), &mut hide),
            };
            match handed_over {
                Err(ReadError::Embedded(finding)) => {
                    let place = place_in(finding.place(), schema, &object);
                    return Err(Undecodable::Embedded(place.to_schema()));
                }
                other => other.map_err(|_| Undecodable::Malformed)?,
            }
            if let Value::Object(fields) = &mut *object {
                fields.insert("apiVersion".to_owned(), Value::from(self.crd.api_version()));
            }
            dropped(stored, &object, schema, &Trail::ROOT, &mut hide);
            // Values that reading at the stored version filled in were never stored.
            hidden.retain(|path| path.value_in(stored).is_some());
        }
        hidden.sort();
        hidden.dedup();
        Ok(View { object, hidden })
    }
}
