//! The schemas and objects that are measured. They are not the easy ones: the real ones are whole schemas of
//! CRDs in use, with objects of one to three kilobytes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::bufread::MultiGzDecoder;
use kube_structural_schema::json::Json;
use serde_json::{Map, Value, json};

use crate::cluster::crd;
use crate::conformance::{Op, Vector};

/// A schema and an object that is stored with defaults missing, where the schema has any.
#[derive(Clone, Debug)]
pub struct Input {
    /// What reports call it; also a file's name.
    pub name: String,
    /// An `openAPIV3Schema`.
    pub schema: Json,
    /// The object.
    pub object: Json,
}

/// Vectors over real CRDs whose objects are measured, by id.
const REAL: &[(&str, &str)] = &[
    (
        "victoriametrics-vmalert",
        "current/VictoriaMetrics-operator/vmalerts.operator.victoriametrics.com.yaml#42",
    ),
    ("prometheus-podmonitor", "current/prometheus-operator/podmonitors.monitoring.coreos.com.yaml#1015"),
    ("toolhive-mcpserver", "current/stacklok-toolhive/mcpservers.toolhive.stacklok.dev.yaml#1100"),
    (
        "karpenter-ec2nodeclass",
        "current/aws-karpenter-provider-aws/ec2nodeclasses.karpenter.k8s.aws.yaml#132",
    ),
    ("flux-helmrelease", "current/fluxcd-helm-controller/helmreleases.helm.toolkit.fluxcd.io.yaml#364"),
];

/// The objects of the vectors in [`REAL`], pruned as a server would have stored them.
pub(super) fn real_crds() -> anyhow::Result<Vec<Input>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/real-crds-1.36.jsonl.gz");
    let file = File::open(&path).with_context(|| format!("open {}", path.display()))?;
    let mut inputs = Vec::new();
    for line in BufReader::new(MultiGzDecoder::new(BufReader::new(file))).split(b'\n') {
        let Vector { id, case, .. } = Vector::parse(&line?)?;
        if let Some((name, _)) = REAL.iter().find(|(_, wanted)| *wanted == id) {
            ensure!(case.op == Op::Read, "{id} is no read");
            inputs.push(Input { name: (*name).to_owned(), schema: case.schema, object: case.object });
        }
    }
    ensure!(inputs.len() == REAL.len(), "{} holds {} of {} inputs", path.display(), inputs.len(), REAL.len());
    Ok(inputs)
}

/// The shape that upstream measures pruning with (`pkg/apiserver/schema/pruning/algorithm_test.go`): objects
/// that prune inside ones that preserve, and the other way round. Once as it is, without defaults, and once
/// with one at every node.
pub(super) fn pruning_shapes() -> Vec<Input> {
    let shape = |default: bool| {
        let node = |mut schema: Value, value: Value| {
            if let (true, Value::Object(keywords)) = (default, &mut schema) {
                keywords.insert("default".to_owned(), value);
            }
            schema
        };
        let open = || {
            node(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), json!({"kept": 1}))
        };
        let closed = || node(json!({"type": "object"}), json!({}));
        let both = |mut schema: Value| {
            let mut properties = Map::new();
            properties.insert("preserving".to_owned(), open());
            properties.insert("pruning".to_owned(), closed());
            if default {
                properties.insert("gamma".to_owned(), node(json!({"type": "integer"}), json!(7)));
            }
            schema["properties"] = Value::Object(properties);
            schema
        };
        json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "alpha": node(json!({"type": "string"}), json!("abc")),
                "beta": node(json!({"type": "number"}), json!(42.0)),
                "pruning": both(closed()),
                "preserving": both(open()),
            },
        })
    };
    let object = json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", "namespace": "default"},
        "unspecified": "bar",
        "alpha": "abc",
        "unspecifiedObject": {"unspecified": "bar"},
        "pruning": {"pruning": {}, "preserving": {"unspecified": "bar"}},
        "preserving": {
            "unspecified": "bar",
            "unspecifiedObject": {"unspecified": "bar"},
            "pruning": {},
            "preserving": {"unspecified": "bar"},
        },
    });
    [("pruning-shape", false), ("pruning-shape-with-defaults", true)]
        .map(|(name, default)| Input {
            name: name.to_owned(),
            schema: shape(default).into(),
            object: object.clone().into(),
        })
        .into()
}

/// A CRD with one version that has a schema, as a server returns it.
pub fn crd_of(schema: &Json) -> Json {
    let mut crd = crd("stable.example.com", "Thing", &[("v1", true, schema.clone().into_inner())]);
    crd["metadata"]["uid"] = "a".into();
    crd["metadata"]["generation"] = 1.into();
    crd["status"] = json!({"storedVersions": ["v1"]});
    crd.into()
}

/// An object as a server returns it whose every field one manager has applied.
pub(super) fn owned(object: &Json) -> Json {
    let mut owned = object.clone().into_inner();
    let mut fields = fields_of(&owned);
    if let Value::Object(fields) = &mut fields {
        for implied in ["f:apiVersion", "f:kind", "f:metadata"] {
            fields.remove(implied);
        }
    }
    owned["apiVersion"] = "stable.example.com/v1".into();
    owned["kind"] = "Thing".into();
    owned["metadata"]["uid"] = "b".into();
    owned["metadata"]["resourceVersion"] = "5".into();
    owned["metadata"]["managedFields"] = json!([{
        "manager": "kubectl",
        "operation": "Apply",
        "apiVersion": "stable.example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }]);
    owned.into()
}

/// The field set of a whole value; lists are owned as one.
fn fields_of(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut set: Map<_, _> =
                fields.iter().map(|(name, value)| (format!("f:{name}"), fields_of(value))).collect();
            set.insert(".".to_owned(), json!({}));
            Value::Object(set)
        }
        _ => json!({}),
    }
}
