//! The whole way from the bytes in etcd to the view that a reader gets, without conversion.
//! The schema is that of the version the object is stored in.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`,
//! `unstructuredSchemaCoercer.apply` and `unstructuredDefaulter.Default`.

use serde_json::Value;

use super::meta::{Malformed, Misfit, coerce, decode};
use super::nulls::drop_nulls;
use crate::compile::Compiled;
use crate::finding::Finding;
use crate::json::{Json, narrow};
use crate::path::Trail;
use crate::prune::prune;
use crate::schema::{Place, Schema};

/// Why an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The server fails to prune the defaults of the schema and does not serve the version.
    #[error("the schema has a default for a whole object that is none")]
    Unservable,
    /// The metadata of the object is not an object.
    #[error("metadata cannot be read: {0}")]
    Metadata(#[from] Misfit),
    /// An embedded resource has an `apiVersion`, a `kind` or metadata that the server cannot decode.
    #[error("{} of an embedded resource cannot be read", .0.place())]
    Embedded(Box<Finding>),
}

/// Turns an object as it is stored into the object that is read, and reports the topmost fields that this
/// hides.
///
/// In this order: unknown fields are pruned, nulls that are not values are dropped, the metadata of embedded
/// resources is coerced, the object's own metadata is decoded, defaults are filled in. Unlike a server, this
/// leaves `metadata.generation` alone where it is missing.
///
/// # Errors
/// Where a server would answer with an error; the object is then half way.
pub fn read(
    object: &mut Value,
    schema: &Schema,
    compiled: &Compiled,
    hidden: &mut impl FnMut(&Trail<'_>),
) -> Result<(), ReadError> {
    decode_and_fill(object, schema, compiled, &mut |object| {
        prune(object, schema, true, hidden);
        drop_nulls(object, schema, Some(compiled.root()));
    })
}

/// [`read`] for a CRD with `spec.preserveUnknownFields: true`: nothing is pruned, and no null is dropped.
/// Defaults are still filled in, also for nulls.
///
/// # Errors
/// As [`read`].
pub fn read_preserving(object: &mut Value, schema: &Schema, compiled: &Compiled) -> Result<(), ReadError> {
    decode_and_fill(object, schema, compiled, &mut |_| {})
}

/// Hands an object that was read, and converted, over to a version, in which it stays if it was stored there:
/// as [`read`], without the defaults. Now embedded resources must be readable.
///
/// Source: `schemaCoercingConverter.ConvertToVersion`, which drops no malformed metadata.
///
/// # Errors
/// Where a server would answer with an error; the object is then half way.
pub fn hand_over(
    object: &mut Value,
    schema: &Schema,
    compiled: &Compiled,
    hidden: &mut impl FnMut(&Trail<'_>),
) -> Result<(), ReadError> {
    prune(object, schema, true, hidden);
    drop_nulls(object, schema, Some(compiled.root()));
    hand_over_preserving(object, schema)
}

/// [`hand_over`] for a CRD with `spec.preserveUnknownFields: true`.
///
/// # Errors
/// As [`hand_over`].
pub fn hand_over_preserving(object: &mut Value, schema: &Schema) -> Result<(), ReadError> {
    coerce(object, schema, false, Malformed::Refuse, &Place::root(""))
        .map_err(|finding| ReadError::Embedded(finding.into()))
}

fn decode_and_fill(
    object: &mut Value,
    schema: &Schema,
    compiled: &Compiled,
    drop_unknown: &mut impl FnMut(&mut Value),
) -> Result<(), ReadError> {
    if !compiled.is_servable() {
        return Err(ReadError::Unservable);
    }
    narrow(object);
    let metadata = object.get("metadata").map(|metadata| decode(metadata, Malformed::Drop)).transpose()?;
    drop_unknown(object);
    // Nothing is refused here, so this cannot fail.
    let _ = coerce(object, schema, false, Malformed::Drop, &Place::root(""));
    if let (Some(decoded), Value::Object(fields)) = (metadata, &mut *object) {
        drop(fields.insert("metadata".to_owned(), Value::Object(decoded)).map(Json::from));
    }
    compiled.fill(object);
    Ok(())
}
