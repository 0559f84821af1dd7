//! The objects of a pass, of a size that is asked for, and the releases of their CRD, each with one default
//! more. It writes them to etcd: through the API server that would take minutes, and is not what is measured.

use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, crd, with_spec};
use crate::control_plane::object_key;

pub(super) const GROUP: &str = "bench.example.com";
pub(super) const PLURAL: &str = "reports";
pub(super) const CRD: &str = "reports.bench.example.com";
pub(super) const COLLECTION: &str = "/apis/bench.example.com/v1/reports";
/// Objects that one request writes to etcd, and requests at once.
const TOGETHER: usize = 100;
const AT_ONCE: usize = 4;
/// How long a line of an object is, in bytes.
const LINE: usize = 60;

/// A release of the CRD: with as many defaults.
pub(super) fn release(number: usize) -> Value {
    let mut fields: Map<String, Value> = (0..number).map(|number| (field(number), default(number))).collect();
    fields.insert("title".to_owned(), json!({ "type": "string" }));
    fields.insert("lines".to_owned(), json!({ "type": "array", "items": { "type": "string" } }));
    crd(GROUP, "Report", &[("v1", true, with_spec(fields))])
}

/// The field whose default a release is the first to have.
pub(super) fn newest(release: usize) -> String {
    field(release - 1)
}

fn field(number: usize) -> String {
    format!("limit{number}")
}

fn default(number: usize) -> Value {
    json!({ "type": "integer", "default": number })
}

/// The name of an object.
pub(super) fn name(index: usize) -> String {
    format!("object-{index:06}")
}

/// Writes objects to etcd that hold no default of any release.
pub(super) async fn write(cluster: &Cluster, count: usize, bytes: usize) -> anyhow::Result<()> {
    let batches = (0..count).step_by(TOGETHER).map(|first| async move {
        let batch = (first..count.min(first + TOGETHER)).map(|index| {
            let key = object_key(GROUP, PLURAL, Some("default"), &name(index));
            (key, object(index, bytes).to_string().into_bytes())
        });
        cluster.etcd().put_all(batch).await
    });
    stream::iter(batches).buffer_unordered(AT_ONCE).try_collect().await
}

/// An object of about this size, all of whose fields belong to kubectl.
fn object(index: usize, bytes: usize) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Report",
        "metadata": {
            "name": name(index), "namespace": "default",
            "uid": format!("00000000-0000-4000-8000-{index:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1,
            "managedFields": [{
                "manager": "kubectl", "operation": "Apply", "apiVersion": format!("{GROUP}/v1"),
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": { "f:spec": { "f:title": {}, "f:lines": {} } },
            }],
        },
        "spec": { "title": "a report", "lines": [] },
    });
    let missing = bytes.saturating_sub(object.to_string().len());
    // Each comes with two quotes and a comma.
    let lines = (0..missing / (LINE + 3)).map(|number| Value::from(format!("{number:0>LINE$}")));
    object["spec"]["lines"] = lines.collect();
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_size_that_is_asked_for() {
        for bytes in [1_000, 10_000] {
            let is = object(7, bytes).to_string().len();
            assert!(is <= bytes && bytes - is < LINE + 3, "{is} of {bytes}");
        }
    }

    #[test]
    fn each_release_has_one_default_more() {
        let has = |release: &Value, field: &str| {
            let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            release.pointer(fields).is_some_and(|fields| fields[field]["default"].is_number())
        };
        assert!(has(&release(1), &newest(1)) && !has(&release(1), &newest(2)));
        assert!(has(&release(2), &newest(1)) && has(&release(2), &newest(2)));
    }
}
