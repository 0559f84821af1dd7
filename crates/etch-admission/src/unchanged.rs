//! What an update leaves as it was: by that existing objects can still be labelled, finished and deleted.

use serde_json::{Map, Value};

use super::compile::Target;
use super::former::Extension;
use super::place::{Location, value_at};
use super::request::Request;
use kube_structural_schema::json::same;

/// How much of an update is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// It only removes finalizers: nothing is.
    FinalizersOnly,
    /// The object is being deleted: only rules about a change are.
    Terminating,
    /// The extensions are as they were, or there is none, as before: rules about the object and about a
    /// change are.
    AroundExtension,
    /// All of it.
    Extension,
}

/// What an update touches: of the extensions at the place of the target, these are those that count.
pub(super) fn touch(request: &Request<'_>, target: &Target, extensions: &[Extension]) -> Touch {
    let Some(old) = request.old_object else { return Touch::Extension };
    if only_removes_finalizers(request.object, old) {
        return Touch::FinalizersOnly;
    }
    if request.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return Touch::Terminating;
    }
    let has_none =
        |object| target.place.find(object, &Location::new()).iter().all(|(_, value)| value.is_null());
    let is_as_it_was = match extensions {
        [] => has_none(request.object) && has_none(old),
        _ => extensions.iter().all(|extension| is_unchanged(request, extension)),
    };
    if is_as_it_was { Touch::AroundExtension } else { Touch::Extension }
}

/// Whether an extension is as it was.
pub(super) fn is_unchanged(request: &Request<'_>, extension: &Extension) -> bool {
    let former = extension.former.as_ref().zip(request.old_object);
    let former = former.and_then(|(former, old)| value_at(old, former));
    former.zip(value_at(request.object, &extension.at)).is_some_and(|(old, new)| same(new, old))
}

/// Whether the new object is the old one with fewer finalizers, whatever the server writes beside that.
fn only_removes_finalizers(new: &Value, old: &Value) -> bool {
    let finalizers = |object: &Value| match object.pointer("/metadata/finalizers") {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let (kept, before) = (finalizers(new), finalizers(old));
    kept.len() < before.len()
        && kept.iter().all(|finalizer| before.contains(finalizer))
        && same(&without_bookkeeping(new), &without_bookkeeping(old))
}

fn without_bookkeeping(object: &Value) -> Value {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    let empty = Value::Object(Map::new());
    let mut metadata = fields.remove("metadata").unwrap_or(empty);
    if let Value::Object(metadata) = &mut metadata {
        for name in ["finalizers", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(name);
        }
    }
    fields.insert("metadata".to_owned(), metadata);
    Value::Object(fields)
}
