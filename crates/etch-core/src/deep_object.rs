//! An object that kube-runtime's watchers read although it is nested deeper than serde_json's limit of 128
//! levels: API servers accept such objects (fact C7), and one of them would fail the list of all.
//!
//! What is nested deeper than [`DEPTH`](kube_structural_schema::json::DEPTH) is left out. A server writes the
//! type of a watch event before its object, as Go does: otherwise serde would read the object to find the
//! type, with that limit.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::Resource;
use kube::core::DynamicResourceScope;
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use kube_structural_schema::json::Json;

/// The fields of an object, of which no more is read than where each ends.
type Fields = BTreeMap<String, Box<RawValue>>;

/// An object without a type, or of which only the metadata is asked for.
#[derive(Clone, Debug)]
pub struct Deep<const METADATA: bool>(pub DynamicObject);

/// A whole object.
pub type DeepObject = Deep<false>;
/// Its metadata alone.
pub type DeepMetadata = Deep<true>;

impl<'de, const METADATA: bool> Deserialize<'de> for Deep<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Fields::deserialize(deserializer)?;
        let metadata = match fields.remove("metadata") {
            Some(text) => serde_json::from_str(text.get()).map_err(D::Error::custom)?,
            None => Fields::new(),
        };
        // A parsed value has no limit.
        let metadata = serde_json::from_value(parsed(metadata).into()).map_err(D::Error::custom)?;
        Ok(Self(DynamicObject { types: None, metadata, data: parsed(fields).into() }))
    }
}

fn parsed(fields: Fields) -> Map<String, Value> {
    let parsed = |text: &RawValue| Some(Json::parse(text.get().as_bytes()).ok()?.into_inner());
    fields.into_iter().filter_map(|(name, text)| Some((name, parsed(&text)?))).collect()
}

impl<const METADATA: bool> Resource for Deep<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        METADATA
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    /// A text of JSON with so many objects in each other.
    fn nested(levels: usize) -> String {
        format!("{}{{}}{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1))
    }

    fn object(levels: usize) -> String {
        let deep = nested(levels);
        let metadata = format!(r#"{{"name":"n","uid":"u","managedFields":[{{"fieldsV1":{deep}}}]}}"#);
        format!(r#"{{"kind":"K","metadata":{metadata},"spec":{deep}}}"#)
    }

    #[test]
    fn an_object_is_read_to_any_depth_that_the_rest_of_etch_reads() {
        for (levels, is_read) in [(1, true), (500, true), (1_001, false)] {
            let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, object(levels));
            let list: ObjectList<DeepObject> = serde_json::from_str(&list).expect("a list");
            let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, object(levels));
            let event: WatchEvent<DeepObject> = serde_json::from_str(&event).expect("an event");
            let WatchEvent::Modified(seen) = event else { panic!("another event") };
            for Deep(object) in list.items.into_iter().chain([seen]) {
                let DynamicObject { metadata, data, .. } = object;
                assert_eq!((metadata.name.as_deref(), metadata.uid.as_deref()), (Some("n"), Some("u")));
                assert_eq!(data["kind"], "K");
                assert_eq!((data["spec"].is_object(), metadata.managed_fields.is_some()), (is_read, is_read));
            }
        }
    }
}
