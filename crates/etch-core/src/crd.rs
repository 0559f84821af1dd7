//! A CustomResourceDefinition, reduced to what decisions about its objects need.
//! The structural rules and the validation of defaults are elsewhere.

mod elsewhere;

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::breakable::BreakableScopes;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::{ParseError, Pool, Schema};

/// The API groups that kube-apiserver serves itself. A CRD may be in a group that ends in `k8s.io` if it has
/// the annotation `api-approved.kubernetes.io`, whatever its value, and never in a group without a dot,
/// unless it was put into etcd directly.
///
/// Source: kubernetes 1.37 `pkg/controlplane/instance.go`, and those that older releases served.
const BUILT_IN: [&str; 23] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// The field that a create drops where it is a subresource.
pub const STATUS: &str = "status";

/// One CRD with the schemas of all its versions.
pub struct Crd {
    name: String,
    uid: String,
    generation: i64,
    created: Option<Timestamp>,
    group: String,
    kind: String,
    plural: String,
    namespaced: bool,
    converted_by_webhook: bool,
    preserves_unknown_fields: bool,
    versions: Vec<Version>,
    storage: usize,
    versions_disagree: bool,
    creates_drop_status: bool,
    /// The other versions at which objects may be stored.
    elsewhere: Vec<Elsewhere>,
    invalid_defaults: Vec<Path>,
    /// The places of defaults that get one of these inside; sorted.
    spoiled_defaults: Vec<Path>,
    compiled: Compiled,
    breakable_scopes: BreakableScopes,
}

impl fmt::Debug for Crd {
    /// Which CRD it is, and of which generation: its schemas would fill pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crd")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// A version other than the storage version at which objects may be stored.
#[derive(Debug)]
struct Elsewhere {
    version: String,
    /// Its defaults; `None` if the CRD no longer has the version.
    compiled: Option<Compiled>,
}

/// One version of a CRD.
#[derive(Debug)]
pub struct Version {
    /// `v1`
    pub name: String,
    /// Whether the API server serves it.
    pub served: bool,
    /// Whether `status` is a subresource: a create through this version drops it (fact D11).
    pub status_subresource: bool,
    /// Where the scale subresource writes, if there is one: the server may record no owner for it (fact W34).
    pub scale: Option<Path>,
    /// Whether a write through this version may store an object without a default that the storage version
    /// shows: it has another schema (fact W10), or a webhook converts it, which may be older than the CRD.
    pub may_drop_defaults: bool,
    /// Its schema; an empty one if the CRD gives none.
    pub schema: Schema,
}

/// Why a document cannot be read as a CRD.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// A field without which there is no CRD.
    #[error("{field} is missing or not {expected}")]
    Malformed {
        /// The field's place in the document.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A schema that the API server would refuse as well, or serves no object with.
    #[error("the schema of version {version} cannot be read: {source}")]
    Schema {
        /// The version's name.
        version: String,
        /// What is wrong with it, and where.
        #[source]
        source: ParseError,
    },
}

/// Group, version and plural: what a request's path is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// `stable.example.com`
    pub group: String,
    /// `v1`
    pub version: String,
    /// `crontabs`
    pub plural: String,
}

impl Resource {
    /// The resource of these names.
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }
}

impl Crd {
    /// Reads a CRD of `apiextensions.k8s.io/v1`.
    ///
    /// # Errors
    /// See [`CrdError`]; the text names fields and versions only.
    pub fn read(document: &Json) -> Result<Self, CrdError> {
        Self::read_with(document, None)
    }

    /// Reads a CRD that is held beside many others: what their schemas have in common is held once.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_sharing(document: &Json, pool: &Pool) -> Result<Self, CrdError> {
        Self::read_with(document, Some(pool))
    }

    fn read_with(document: &Json, pool: Option<&Pool>) -> Result<Self, CrdError> {
        let spec = document.get("spec").ok_or(malformed("spec", "an object"))?;
        let documents = spec
            .get("versions")
            .and_then(Value::as_array)
            .filter(|versions| !versions.is_empty())
            .ok_or(malformed("spec.versions", "a list of versions"))?;
        let preserves_unknown_fields = spec["preserveUnknownFields"] == true;
        let version = |document| version(document, preserves_unknown_fields);
        let mut versions = documents.iter().map(version).collect::<Result<Vec<_>, _>>()?;
        if let Some(pool) = pool {
            versions.iter_mut().for_each(|version| pool.share(&mut version.schema));
        }
        let storage = documents
            .iter()
            .position(|version| version.get("storage") == Some(&Value::Bool(true)))
            .ok_or(malformed("spec.versions[].storage", "true for any version"))?;
        let compiled = Compiled::new(&versions[storage].schema);
        let (invalid_defaults, spoiled_defaults) = invalid_defaults(&versions);
        let breakable_scopes = BreakableScopes::of(&versions[storage].schema);
        let stored_schema = schema_document(&documents[storage]);
        let converted_by_webhook = spec["conversion"]["strategy"] == "Webhook";
        for (index, (document, version)) in documents.iter().zip(&mut versions).enumerate() {
            let is_another = converted_by_webhook || !same(schema_document(document), stored_schema);
            version.may_drop_defaults = index != storage && is_another;
        }
        let elsewhere = stored_elsewhere(document, &versions[storage].name)
            .map(|name| Elsewhere {
                version: name.to_owned(),
                compiled: versions.iter().find(|version| version.name == name).map(|version| {
                    match converted_by_webhook || preserves_unknown_fields {
                        true => Compiled::new(&version.schema),
                        // What is read at one version is pruned for the other.
                        false => Compiled::shown_by(&version.schema, &versions[storage].schema),
                    }
                }),
            })
            .collect();
        let served = || versions.iter().filter(|version| version.served);
        let versions_disagree = served().any(|version| version.may_drop_defaults);
        let creates_drop_status =
            compiled.has_default_within(STATUS) && served().any(|version| version.status_subresource);
        Ok(Self {
            name: text(document, &["metadata", "name"]).ok_or(malformed("metadata.name", "a name"))?,
            uid: text(document, &["metadata", "uid"]).unwrap_or_default(),
            generation: document["metadata"]["generation"].as_i64().unwrap_or_default(),
            created: document["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok()),
            group: text(spec, &["group"]).ok_or(malformed("spec.group", "a group"))?,
            kind: text(spec, &["names", "kind"]).ok_or(malformed("spec.names.kind", "a kind"))?,
            plural: text(spec, &["names", "plural"]).ok_or(malformed("spec.names.plural", "a plural"))?,
            namespaced: spec["scope"] != "Cluster",
            converted_by_webhook,
            preserves_unknown_fields,
            elsewhere,
            invalid_defaults,
            spoiled_defaults,
            versions,
            storage,
            versions_disagree,
            creates_drop_status,
            compiled,
            breakable_scopes,
        })
    }

    /// `crontabs.stable.example.com`
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The uid; a CRD that was deleted and created again has another. Empty where the document is from a
    /// file.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// When it was created; `None` where the document is from a file.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// The generation of the CRD that was read; 0 where the document is from a file.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// `stable.example.com`
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Whether its group is one that the API server serves itself: requests for its objects are answered with
    /// built-in ones, and its defaults would be stored in those.
    pub fn is_shadowed(&self) -> bool {
        BUILT_IN.contains(&self.group.as_str())
    }

    /// The reason in words, for a refusal of such a CRD; `None` if its group is its own.
    pub fn shadowed(&self) -> Option<String> {
        let text = "itself; this CRD's defaults would reach built-in objects";
        self.is_shadowed().then(|| format!("the API server serves the group {} {text}", self.group))
    }

    /// `CronTab`
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Whether the server keeps the fields that its schemas do not know: a CRD from before schemas had to be
    /// structural (fact D12).
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserves_unknown_fields
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// The version in which the server writes to etcd: S.
    pub fn storage(&self) -> &Version {
        &self.versions[self.storage]
    }

    /// A version by its name; `None` if the CRD does not have it, or no longer.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// All versions, in the order of the CRD.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The storage version's schema, ready for filling.
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Where defaults of the storage version can break what stands around them.
    pub fn breakable_scopes(&self) -> &BreakableScopes {
        &self.breakable_scopes
    }

    /// The group and the storage version: `stable.example.com/v1`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.storage().name)
    }

    /// Where its objects are read and written.
    pub fn resource(&self) -> Resource {
        Resource {
            group: self.group.clone(),
            version: self.storage().name.clone(),
            plural: self.plural.clone(),
        }
    }

    /// Whether any version, served or not, may lack defaults of the storage version: bytes that were stored
    /// there may have come to the storage version without them (facts W6, W25).
    pub fn has_version_that_may_drop_defaults(&self) -> bool {
        self.versions.iter().any(|version| version.may_drop_defaults)
    }

    /// The places of defaults, at any version, that are themselves invalid: what gets one of them is refused,
    /// or will be.
    ///
    /// The server looks for them when a CRD is written, but not below `additionalProperties` (fact C4), at
    /// items that are in a set or list map twice, at the type of an int-or-string, nor without formats that
    /// objects are not checked for (fact D14), nor at what a default comes to with those below it.
    pub fn invalid_defaults(&self) -> &[Path] {
        &self.invalid_defaults
    }

    /// Whether the default at a place of the schema is itself invalid, or gets one that is inside.
    pub fn gives_invalid_default(&self, place: &Path) -> bool {
        [&self.invalid_defaults, &self.spoiled_defaults]
            .iter()
            .any(|sites| sites.binary_search(place).is_ok())
    }

    /// Whether a write through a served version may store an object without a default that the storage
    /// version shows: see [`Version::may_drop_defaults`].
    pub fn versions_disagree(&self) -> bool {
        self.versions_disagree
    }

    /// Whether a created object may lack defaults at or below `status` that every read shows: see
    /// [`Version::status_subresource`].
    pub fn creates_drop_status(&self) -> bool {
        self.creates_drop_status
    }

    /// Whether the storage version has a default at or below `status`.
    pub fn has_status_default(&self) -> bool {
        self.compiled.has_default_within(STATUS)
    }

    /// Whether a webhook converts objects between the versions.
    pub fn is_converted_by_webhook(&self) -> bool {
        self.converted_by_webhook
    }

    /// Whether a value at a place, or a part of it, may come through a scale subresource.
    pub fn is_scaled(&self, place: &Path) -> bool {
        self.versions.iter().filter_map(|version| version.scale.as_ref()).any(|scale| place.contains(scale))
    }

    /// Whether an owner at this version names fields in the storage version's terms. A conversion webhook may
    /// rename any.
    pub fn names_fields_alike(&self, version: &str) -> bool {
        version == self.storage().name || !self.converted_by_webhook
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}/{}", self.plural, self.group, self.version)
    }
}

/// Why the API server serves no objects of a CRD, as far as its conditions show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    /// The names are not accepted, for this reason, such as `KindConflict`.
    #[error("NamesAccepted is False ({0}); give the CRD names that no other one in its group has")]
    Names(String),
    /// The condition `Established` is not there. The server sets it for names that it has yet to accept (fact
    /// C13).
    #[error(
        "its status has no condition Established, as after a restore or a write that replaced the status; \
         restore that condition, or change a name such as a short name to have the API server set it again"
    )]
    NoConditions,
}

impl Unserved {
    /// The reason in the conditions of the CRD's `document`; `None` if they show none.
    pub fn of(document: &Json) -> Option<Self> {
        let conditions = document["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_type = |name| conditions.iter().find(|condition| condition["type"] == name);
        if let Some(names) = of_type("NamesAccepted").filter(|names| names["status"] == "False") {
            let is_word = |reason: &&str| reason.chars().all(|char| char.is_ascii_alphabetic());
            return Some(Self::Names(
                names["reason"].as_str().filter(is_word).unwrap_or_default().to_owned(),
            ));
        }
        // A new CRD has no names accepted yet.
        let is_known =
            document["status"]["acceptedNames"]["plural"].as_str().is_some_and(|name| !name.is_empty());
        (is_known && of_type("Established").is_none()).then_some(Self::NoConditions)
    }
}

fn version(document: &Value, preserves_unknown_fields: bool) -> Result<Version, CrdError> {
    let name = text(document, &["name"]).ok_or(malformed("spec.versions[].name", "a name"))?;
    let schema = match Schema::parse(schema_document(document)) {
        // The server continues without a schema where it need not prune: it fills in nothing (fact D12).
        Err(ParseError::Unsupported { .. }) if preserves_unknown_fields => Schema::default(),
        schema => schema.map_err(|source| CrdError::Schema { version: name.clone(), source })?,
    };
    Ok(Version {
        served: document.get("served") == Some(&Value::Bool(true)),
        status_subresource: document["subresources"]["status"].is_object(),
        scale: scale(document),
        may_drop_defaults: false,
        name,
        schema,
    })
}

/// Where a version's scale subresource writes: `.spec.replicas`.
fn scale(version: &Value) -> Option<Path> {
    let path = version["subresources"]["scale"]["specReplicasPath"].as_str()?;
    Some(path.split('.').skip(1).map(|name| Step::Field(name.to_owned())).collect())
}

/// The versions other than the storage version at which objects may be stored.
fn stored_elsewhere<'a>(document: &'a Json, storage: &'a str) -> impl Iterator<Item = &'a str> {
    let stored = document.get("status").and_then(|status| status.get("storedVersions"));
    let names = stored.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    names.filter(move |name| *name != storage)
}

/// The places of defaults that are invalid, and of those that get one inside.
fn invalid_defaults(versions: &[Version]) -> (Vec<Path>, Vec<Path>) {
    let (mut sites, mut spoiled) = (Vec::new(), Vec::new());
    for version in versions {
        let found = kube_crd_validation::defaults(&version.schema);
        sites.extend(found.sites);
        spoiled.extend(found.spoiled);
    }
    for places in [&mut sites, &mut spoiled] {
        places.sort();
        places.dedup();
    }
    (sites, spoiled)
}

fn schema_document(version: &Value) -> &Value {
    version.get("schema").and_then(|schema| schema.get("openAPIV3Schema")).unwrap_or(&Value::Null)
}

fn text(document: &Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(document, |value, field| value.get(field))?;
    found.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn malformed(field: &'static str, expected: &'static str) -> CrdError {
    CrdError::Malformed { field, expected }
}

pub mod sample;
#[cfg(test)]
mod tests;
