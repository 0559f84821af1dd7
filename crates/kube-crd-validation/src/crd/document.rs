//! A CRD as the server holds it: decoded from `apiextensions.k8s.io/v1`, defaulted, and converted to its
//! internal type.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/{types,defaults,conversion}.go` and
//! `pkg/registry/customresourcedefinition/strategy.go`.

use serde_json::{Map, Value};

use super::malformed::Malformed;
use super::props::Props;
use super::read::{Fields, Read};
use crate::metadata::names::small;
use kube_structural_schema::defaults::meta::{self, Malformed as OfMetadata};
use kube_structural_schema::schema::Place;

/// A CRD.
#[derive(Debug)]
pub(super) struct Crd<'d> {
    pub(super) metadata: Value,
    pub(super) spec: Spec<'d>,
    pub(super) accepted_names: Names<'d>,
    pub(super) stored_versions: Vec<&'d str>,
    /// Whether the condition `Established` is true.
    pub(super) established: bool,
}

/// `spec`. What all versions have in common stands here, and not in the versions.
#[derive(Debug)]
pub(super) struct Spec<'d> {
    pub(super) group: &'d str,
    /// The first version's name.
    pub(super) version: &'d str,
    pub(super) names: Names<'d>,
    pub(super) scope: &'d str,
    pub(super) validation: Option<Validation<'d>>,
    pub(super) subresources: Option<Subresources<'d>>,
    pub(super) versions: Vec<Version<'d>>,
    pub(super) columns: Vec<Column<'d>>,
    pub(super) selectable: Vec<&'d str>,
    pub(super) conversion: Conversion<'d>,
    pub(super) preserve_unknown_fields: bool,
}

/// `names`.
#[derive(Debug, Default)]
pub(super) struct Names<'d> {
    pub(super) plural: &'d str,
    pub(super) singular: String,
    pub(super) short: Vec<&'d str>,
    pub(super) kind: &'d str,
    pub(super) list_kind: String,
    pub(super) categories: Vec<&'d str>,
}

/// One of `versions`.
#[derive(Debug)]
pub(super) struct Version<'d> {
    pub(super) name: &'d str,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) deprecation_warning: Option<&'d str>,
    pub(super) validation: Option<Validation<'d>>,
    pub(super) subresources: Option<Subresources<'d>>,
    pub(super) columns: Vec<Column<'d>>,
    pub(super) selectable: Vec<&'d str>,
}

/// `schema`, with or without an `openAPIV3Schema`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Validation<'d> {
    pub(super) schema: Option<Box<Props<'d>>>,
}

/// `subresources`.
#[derive(Debug, PartialEq)]
pub(super) struct Subresources<'d> {
    pub(super) status: bool,
    pub(super) scale: Option<Scale<'d>>,
}

/// `subresources.scale`.
#[derive(Debug, PartialEq)]
pub(super) struct Scale<'d> {
    pub(super) spec_replicas: &'d str,
    pub(super) status_replicas: &'d str,
    pub(super) label_selector: Option<&'d str>,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug, PartialEq)]
pub(super) struct Column<'d> {
    pub(super) name: &'d str,
    pub(super) kind: &'d str,
    pub(super) format: &'d str,
    description: &'d str,
    priority: i32,
    pub(super) json_path: &'d str,
}

/// `conversion`.
#[derive(Debug)]
pub(super) struct Conversion<'d> {
    pub(super) strategy: &'d str,
    pub(super) client: Option<Client<'d>>,
    pub(super) review_versions: Vec<&'d str>,
}

/// `conversion.webhook.clientConfig`.
#[derive(Debug)]
pub(super) struct Client<'d> {
    pub(super) url: Option<&'d str>,
    pub(super) service: Option<Service<'d>>,
    pub(super) ca_bundle: Vec<u8>,
}

/// `conversion.webhook.clientConfig.service`.
#[derive(Debug)]
pub(super) struct Service<'d> {
    pub(super) namespace: &'d str,
    pub(super) name: &'d str,
    pub(super) path: Option<&'d str>,
    pub(super) port: i32,
}

impl<'d> Crd<'d> {
    /// Reads a CRD.
    pub(super) fn read(document: &'d Value) -> Read<Self> {
        let root = Place::root("");
        let fields = Fields::of(document, &root)?;
        fields.text("apiVersion")?;
        fields.text("kind")?;
        let mut spec = spec(fields.get("spec").unwrap_or(&Value::Null))?;
        spec.merge();
        let (mut accepted_names, mut stored_versions, mut established) =
            (Names::default(), Vec::new(), false);
        fields.read("status", |status, at| {
            let status = Fields::of(status, at)?;
            accepted_names = status.read("acceptedNames", Names::read)?.unwrap_or_default();
            stored_versions = status.texts("storedVersions")?.unwrap_or_default();
            let conditions = status.each("conditions", |condition, at| {
                let condition = Fields::of(condition, at)?;
                condition.time("lastTransitionTime")?;
                condition.text("reason")?;
                condition.text("message")?;
                condition.integer("observedGeneration")?;
                Ok((condition.text("type")?, condition.text("status")?))
            })?;
            let found = conditions.into_iter().flatten().find(|(kind, _)| *kind == "Established");
            established = found.is_some_and(|(_, status)| status == "True");
            Ok(())
        })?;
        Ok(Self {
            metadata: metadata(fields.get("metadata"))?,
            spec,
            accepted_names,
            stored_versions,
            established,
        })
    }

    /// Records that objects may be stored in the storage version: the first one, if there are several.
    pub(super) fn store(&mut self) {
        let storage = self.spec.versions.iter().find(|version| version.storage).map(|version| version.name);
        self.stored_versions.extend(storage.filter(|name| !self.stored_versions.contains(name)));
    }

    /// Forgets the status: a new CRD has none.
    pub(super) fn clear_status(&mut self) {
        self.accepted_names = Names::default();
        self.stored_versions.clear();
        self.established = false;
    }

    /// Takes the status of the CRD before; users do not write it.
    pub(super) fn take_status(&mut self, old: &mut Self) {
        self.accepted_names = std::mem::take(&mut old.accepted_names);
        self.stored_versions.clone_from(&old.stored_versions);
        self.established = old.established;
    }

    /// An annotation's text; empty where there is none.
    pub(super) fn annotation(&self, name: &str) -> &str {
        self.metadata["annotations"][name].as_str().unwrap_or_default()
    }
}

fn metadata(given: Option<&Value>) -> Read<Value> {
    let Some(given) = given else { return Ok(Value::Object(Map::new())) };
    if given.is_object() {
        let at = Place::root("metadata");
        let fields = Fields::of(given, &at)?;
        // A float of a whole number is one of those here, as it is not in an object of a custom resource.
        fields.integer("generation")?;
        fields.integer("deletionGracePeriodSeconds")?;
    }
    meta::decode(given, OfMetadata::Refuse).map(Value::Object).map_err(|misfit| {
        let metadata = Place::root("metadata");
        if misfit.field.is_empty() {
            return Malformed::new(&metadata, misfit.expected);
        }
        Malformed::new(&metadata.child(&misfit.field), misfit.expected)
    })
}

fn spec(value: &Value) -> Read<Spec<'_>> {
    let at = Place::root("spec");
    let fields = Fields::of(value, &at)?;
    let mut names = fields.read("names", Names::read)?.unwrap_or_default();
    if names.singular.is_empty() {
        names.singular = small(names.kind);
    }
    if names.list_kind.is_empty() && !names.kind.is_empty() {
        names.list_kind = format!("{}List", names.kind);
    }
    let versions = fields.each("versions", Version::read)?.unwrap_or_default();
    Ok(Spec {
        group: fields.text("group")?,
        version: versions.first().map_or("", |first| first.name),
        names,
        scope: fields.text("scope")?,
        validation: None,
        subresources: None,
        versions,
        columns: Vec::new(),
        selectable: Vec::new(),
        conversion: fields.read("conversion", Conversion::read)?.unwrap_or_else(Conversion::none),
        preserve_unknown_fields: fields.flag("preserveUnknownFields")?,
    })
}

impl Spec<'_> {
    /// Moves what is the same in all versions out of them.
    fn merge(&mut self) {
        let Some((first, others)) = self.versions.split_first_mut() else { return };
        if others.iter().all(|other| other.validation == first.validation) {
            self.validation = first.validation.take();
            others.iter_mut().for_each(|other| other.validation = None);
        }
        if others.iter().all(|other| other.subresources == first.subresources) {
            self.subresources = first.subresources.take();
            others.iter_mut().for_each(|other| other.subresources = None);
        }
        if others.iter().all(|other| other.columns == first.columns) {
            self.columns = std::mem::take(&mut first.columns);
            others.iter_mut().for_each(|other| other.columns.clear());
        }
        if others.iter().all(|other| other.selectable == first.selectable) {
            self.selectable = std::mem::take(&mut first.selectable);
            others.iter_mut().for_each(|other| other.selectable.clear());
        }
    }
}

impl<'d> Spec<'d> {
    /// All schemas.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &Props<'d>> {
        let versions = self.versions.iter().map(|version| &version.validation);
        let validations = std::iter::once(&self.validation).chain(versions).flatten();
        validations.filter_map(|validation| validation.schema.as_deref())
    }

    /// Whether any schema, or part of one, is of some kind.
    pub(super) fn any_schema(&self, mut is: impl FnMut(&Props<'d>) -> bool) -> bool {
        self.schemas().any(|schema| schema.any(&mut is))
    }
}

impl<'d> Names<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        Ok(Self {
            plural: fields.text("plural")?,
            singular: fields.text("singular")?.to_owned(),
            short: fields.texts("shortNames")?.unwrap_or_default(),
            kind: fields.text("kind")?,
            list_kind: fields.text("listKind")?.to_owned(),
            categories: fields.texts("categories")?.unwrap_or_default(),
        })
    }
}

impl<'d> Version<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        let selectable =
            fields.each("selectableFields", |field, at| Fields::of(field, at)?.text("jsonPath"))?;
        Ok(Self {
            name: fields.text("name")?,
            served: fields.flag("served")?,
            storage: fields.flag("storage")?,
            deprecated: fields.flag("deprecated")?,
            deprecation_warning: fields.optional_text("deprecationWarning")?,
            validation: fields.read("schema", |schema, at| {
                let schema = Fields::of(schema, at)?.read("openAPIV3Schema", Props::read)?;
                Ok(Validation { schema: schema.map(Box::new) })
            })?,
            subresources: fields.read("subresources", Subresources::read)?,
            columns: fields.each("additionalPrinterColumns", Column::read)?.unwrap_or_default(),
            selectable: selectable.unwrap_or_default(),
        })
    }
}

impl<'d> Subresources<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        let status = fields.read("status", |status, at| Fields::of(status, at).map(|_| ()))?;
        let scale = fields.read("scale", |scale, at| {
            let fields = Fields::of(scale, at)?;
            Ok(Scale {
                spec_replicas: fields.text("specReplicasPath")?,
                status_replicas: fields.text("statusReplicasPath")?,
                label_selector: fields.optional_text("labelSelectorPath")?,
            })
        })?;
        Ok(Self { status: status.is_some(), scale })
    }
}

impl<'d> Column<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        Ok(Self {
            name: fields.text("name")?,
            kind: fields.text("type")?,
            format: fields.text("format")?,
            description: fields.text("description")?,
            priority: fields.small_integer("priority")?.unwrap_or_default(),
            json_path: fields.text("jsonPath")?,
        })
    }
}

impl<'d> Conversion<'d> {
    fn none() -> Self {
        Self { strategy: "None", client: None, review_versions: Vec::new() }
    }

    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        let mut conversion = Self { strategy: fields.text("strategy")?, ..Self::none() };
        fields.read("webhook", |webhook, at| {
            let webhook = Fields::of(webhook, at)?;
            conversion.client = webhook.read("clientConfig", Client::read)?;
            conversion.review_versions = webhook.texts("conversionReviewVersions")?.unwrap_or_default();
            Ok(())
        })?;
        Ok(conversion)
    }
}

impl<'d> Client<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        let service = fields.read("service", |service, at| {
            let fields = Fields::of(service, at)?;
            Ok(Service {
                namespace: fields.text("namespace")?,
                name: fields.text("name")?,
                path: fields.optional_text("path")?,
                port: fields.small_integer("port")?.unwrap_or(443),
            })
        })?;
        let ca_bundle = fields.bytes("caBundle")?.unwrap_or_default();
        Ok(Self { url: fields.optional_text("url")?, service, ca_bundle })
    }
}
