//! What the rules look at: the schemas of a CRD, as far as they can be read.

use std::cell::OnceCell;

use serde_json::Value;

use super::site::{Site, each};
use etch_core::crd::CrdError;
use kube_crd_validation::{self, DefaultFindings};
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use kube_structural_schema::schema::Schema;
use kube_structural_schema::schema::rules::crd::{Verdict, judge};

/// A CRD.
pub(super) struct Subject<'a> {
    pub(super) spec: &'a Value,
    /// Those whose schema can be read, in the order of the CRD.
    pub(super) versions: Vec<Version>,
}

/// One version.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) schema: Schema,
    defaults: OnceCell<DefaultFindings>,
}

impl<'a> Subject<'a> {
    pub(super) fn read(crd: &'a Json) -> Result<Self, CrdError> {
        let malformed = |field, expected| CrdError::Malformed { field, expected };
        let spec = crd.get("spec").ok_or(malformed("spec", "an object"))?;
        let documents = spec
            .get("versions")
            .and_then(Value::as_array)
            .filter(|versions| !versions.is_empty())
            .ok_or(malformed("spec.versions", "a list of versions"))?;
        let mut versions = Vec::new();
        for document in documents {
            let name = document.get("name").and_then(Value::as_str);
            let name = name.ok_or(malformed("spec.versions[].name", "a name"))?.to_owned();
            let is = |field: &str| document.get(field) == Some(&Value::Bool(true));
            let schema = document.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
            if let Ok(schema) = Schema::parse(schema.unwrap_or(&Value::Null)) {
                let (served, storage) = (is("served"), is("storage"));
                versions.push(Version { name, served, storage, schema, defaults: OnceCell::new() });
            }
        }
        Ok(Self { spec, versions })
    }

    /// The versions in use: served, or in etcd. The server checks the others as well.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.served || version.storage)
    }

    /// Visits every place of the versions in use.
    pub(super) fn each_site(&self, visit: &mut dyn FnMut(&Version, &Site<'_>)) {
        for version in self.in_use() {
            each(&version.schema, &mut |site| visit(version, site));
        }
    }

    /// The server's verdict on the structure.
    pub(super) fn verdict(&self) -> Verdict {
        judge(self.spec)
    }

    /// The place of a version in the CRD by its name.
    pub(super) fn version_index(&self, name: &str) -> Option<usize> {
        let versions = self.spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
        versions.iter().position(|version| version["name"] == name)
    }

    /// The name of a version by its place in the CRD.
    pub(super) fn version_name(&self, index: usize) -> &'a str {
        self.spec["versions"][index]["name"].as_str().unwrap_or_default()
    }

    /// The version and the place in its schema that a field of the server's is about.
    pub(super) fn place(&self, field: &str) -> (&'a str, Path) {
        let parts = field.strip_prefix("spec.versions[").and_then(|rest| rest.split_once("].schema."));
        let Some((index, below)) = parts else { return ("", Path::root()) };
        let index = index.parse().unwrap_or(usize::MAX);
        (self.version_name(index), Finding::new(Kind::Invalid, below, "").default_site())
    }
}

impl Version {
    /// What is wrong with its defaults, by the rules of the server.
    pub(super) fn default_findings(&self) -> &DefaultFindings {
        self.defaults.get_or_init(|| kube_crd_validation::defaults(&self.schema))
    }
}
