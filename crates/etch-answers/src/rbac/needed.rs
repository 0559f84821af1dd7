//! What permissions are needed for: CRDs, EmbeddedSchemas and policies.

use etch_admission::{Compiled, Declaration, Problem};
use etch_core::api::{Labels, Policies, labels};
use kube_structural_schema::json::Json;
use serde_json::Value;

/// What permissions are needed for.
#[derive(Debug, Default)]
pub struct Needed {
    /// The CRDs.
    pub crds: Vec<Known>,
    /// The EmbeddedSchemas, each with its name.
    pub schemas: Vec<(String, Declaration)>,
    /// Those of the cluster, if the CRDs are of one that has them.
    pub policies: Option<Policies>,
}

/// Why a document names nothing that a role can hold.
#[derive(Debug, thiserror::Error)]
pub enum NotGranted {
    /// A CRD lacks a field.
    #[error("CustomResourceDefinition: {0} is missing")]
    Missing(&'static str),
    /// The targets or the facts of an EmbeddedSchema are wrong.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
    Declaration(Vec<Problem>),
}

/// The part of a CRD that decides about permissions. Its schema does not: defaults may come with its next
/// version.
#[derive(Debug)]
pub struct Known {
    /// The name of the CRD.
    pub name: String,
    /// The group of its objects.
    pub group: String,
    /// The plural in paths of its objects.
    pub plural: String,
    /// The labels of the CRD.
    pub labels: Labels,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether any version has the status subresource.
    pub has_status: bool,
}

impl Known {
    /// Reads the document of a CRD.
    ///
    /// # Errors
    /// It lacks its name, its group or its plural.
    pub fn read(crd: &Json) -> Result<Self, NotGranted> {
        let text = |value: &Value, field: &'static str| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or(NotGranted::Missing(field))
        };
        Ok(Self {
            name: text(&crd["metadata"]["name"], "metadata.name")?,
            group: text(&crd["spec"]["group"], "spec.group")?,
            plural: text(&crd["spec"]["names"]["plural"], "spec.names.plural")?,
            labels: labels(crd),
            is_namespaced: crd["spec"]["scope"] == "Namespaced",
            has_status: crd["spec"]["versions"].as_array().is_some_and(|versions| {
                versions.iter().any(|version| version["subresources"]["status"].is_object())
            }),
        })
    }
}

/// A declaration whose targets and facts have names that a role can hold.
///
/// # Errors
/// What is wrong with them.
pub fn declaration(document: &Json) -> Result<Declaration, NotGranted> {
    let is_granted = |problem: &Problem| {
        ["spec.targets", "spec.facts"].iter().any(|field| problem.field.starts_with(field))
    };
    let read = Declaration::read(&document["spec"]).and_then(|declared| {
        let mut problems = Compiled::new(&declared).err().unwrap_or_default();
        problems.retain(is_granted);
        if problems.is_empty() { Ok(declared) } else { Err(problems) }
    });
    read.map_err(NotGranted::Declaration)
}
