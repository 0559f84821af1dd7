//! Which of the published types a CRD defines: those are installed, and no release of Kubernetes has them.
//! The names of the CRDs decide: nothing in a schema shows who serves it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Document, TypeName, type_name};

impl Document {
    /// The types that requests are answered for, each with the plural by which the paths name it.
    fn resources(&self) -> impl Iterator<Item = (TypeName, &str)> {
        let paths = self.json.get("paths").and_then(Value::as_object).into_iter().flatten();
        paths.filter_map(|(path, operations)| {
            let plural = plural(path)?;
            let mut operations = operations.as_object()?.values();
            let of = operations.find_map(|operation| operation.get("x-kubernetes-group-version-kind"))?;
            Some((type_name(of), plural))
        })
    }
}

/// `crontabs` of `/apis/stable.example.com/v1/namespaces/{namespace}/crontabs`: a path of all objects. The
/// paths of one object and of its subresources are longer, and those of subresources are of other types.
fn plural(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.strip_prefix("/apis/")?.split('/').collect();
    match parts.as_slice() {
        [_, _, plural] | [_, _, "namespaces", "{namespace}", plural] => Some(plural),
        _ => None,
    }
}

/// The types of `old` that one of these CRDs defines and of which `new` has no version, by the name of the
/// CRD. Where `new` has one, both are states of the same installation, and comparable.
pub fn installed<'c>(
    old: &[Document],
    new: &[Document],
    crds: &'c [String],
) -> BTreeMap<&'c str, BTreeSet<TypeName>> {
    let known: BTreeSet<String> = new.iter().flat_map(Document::types).map(TypeName::group_kind).collect();
    let mut installed: BTreeMap<&str, BTreeSet<TypeName>> = BTreeMap::new();
    for (of, plural) in old.iter().flat_map(Document::resources) {
        let name = format!("{plural}.{}", of.group());
        if let Some(crd) = crds.iter().find(|crd| **crd == name).filter(|_| !known.contains(&of.group_kind()))
        {
            installed.entry(crd).or_default().insert(of);
        }
    }
    installed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::published::{changes, changes_without};

    /// A document of one kind with a default, served at the paths of its plural.
    fn document(group: &str, version: &str, kind: &str, plural: &str) -> Document {
        let of = json!({"group": group, "version": version, "kind": kind});
        let schema = json!({
            "type": "object", "x-kubernetes-group-version-kind": [of],
            "properties": {"metadata": {}, "spec": {"type": "string", "default": "a"}},
        });
        let operation =
            |of: &Value| json!({"parameters": [], "get": {"x-kubernetes-group-version-kind": of}});
        let one = format!("/apis/{group}/{version}/namespaces/{{namespace}}/{plural}");
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        let paths = json!({
            format!("{one}/{{name}}/scale"): operation(&scale), format!("{one}/{{name}}"): operation(&of),
            one: operation(&of), format!("/apis/{group}/{version}/"): {"get": {}},
        });
        let document = json!({
            "openapi": "3.0.0", "paths": paths, "components": {
                "schemas": {format!("{group}.{version}.{kind}"): schema},
            },
        });
        Document::read(document.into()).expect("a document")
    }

    #[test]
    fn the_types_of_crds_that_no_release_has_are_not_compared() {
        let old = [
            document("apps", "v1", "Deployment", "deployments"),
            document("stable.example.com", "v1", "CronTab", "crontabs"),
            document("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes"),
        ];
        let new = [document("apps", "v1", "Deployment", "deployments")];
        let crds = ["crontabs.stable.example.com", "deployments.apps"].map(str::to_owned);
        let found = installed(&old, &new, &crds);
        let crontab =
            TypeName { api_version: "stable.example.com/v1".to_owned(), kind: "CronTab".to_owned() };
        let left_out = BTreeSet::from([crontab]);
        assert_eq!(found, BTreeMap::from([("crontabs.stable.example.com", left_out.clone())]));
        let compared = changes_without(&old, &new, &left_out);
        let removed: Vec<_> = compared.removed.iter().map(|of| of.kind.as_str()).collect();
        assert_eq!(removed, ["NodeMetrics"], "an aggregated API is no CRD");
        assert_eq!(compared.defaults.len(), 1);
        assert_eq!(changes(&old, &new).removed.len(), 2);
        // Another installation with a later version of the CRD.
        let later = [document("stable.example.com", "v2", "CronTab", "crontabs")];
        assert!(installed(&old, &later, &crds).keys().copied().eq(["deployments.apps"]));
    }
}
