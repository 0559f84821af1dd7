//! ETCH109 to ETCH111: Go types compared with the CRDs that are generated from them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::site::{Report, effective};
use crate::go_types::{
    Declaration, Field, MarkedDefault, Package, Packages, Resolved, Shape, Source, Struct,
};
use crate::rule::{GoPlace, Rule, Severity};
use crate::site::shown;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

pub(super) const LACKS: Rule = Rule {
    code: "ETCH109",
    name: "go-default-not-in-crd",
    severity: Severity::Warning,
    summary: "a field in Go has a default that the generated CRD lacks",
    help: "\
The server fills in the defaults of the CRD, so the default of the type never applies. Either the CRD is older
than the type, or the generator does not read the marker: controller-gen reads `+kubebuilder:default` and
`+default` on fields, but not `+default=ref(…)`, `+k8s:default`, or markers on types.

Generate the CRD again, or write `+kubebuilder:default` on the field. Fields that the CRD does not have at all
are not reported.",
    check: None,
};

pub(super) const UNMARKED: Rule = Rule {
    code: "ETCH110",
    name: "go-default-only-in-crd",
    severity: Severity::Warning,
    summary: "a generated CRD has a default for which the field in Go has no marker",
    help: "\
The next time the CRD is generated, the default is gone. Either the CRD is older than the type, or something
adds the default after the generator, and readers of the Go type do not see it.

Add a marker to the field, or generate the CRD again. In a CRD that controller-gen annotated, a marker that it
does not read counts as none.",
    check: None,
};

pub(super) const DIFFERS: Rule = Rule {
    code: "ETCH111",
    name: "go-default-differs-from-crd",
    severity: Severity::Warning,
    summary: "a generated CRD has another default than the field in Go",
    help: "\
The server fills in the defaults of the CRD; programs and documentation that use the Go type expect something
else. Most likely the CRD is older than the type.

Generate the CRD again, or correct the marker.",
    check: None,
};

/// Holds the types of a CRD's versions against it.
pub(super) fn check(packages: &Packages, crd: &Json, report: &mut Report) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["kind"]));
    let name = text(&crd["metadata"]["name"]);
    let is_by_controller_gen =
        crd["metadata"]["annotations"]["controller-gen.kubebuilder.io/version"].is_string();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        let version_name = text(&version["name"]);
        let Ok(schema) = Schema::parse(&version["schema"]["openAPIV3Schema"]) else { continue };
        let Some(root) = root(packages, &group, &version_name, &kind) else { continue };
        let mut compare = Compare {
            packages,
            crd: &name,
            version: &version_name,
            is_by_controller_gen,
            seen: BTreeSet::new(),
            report,
        };
        compare.fields(root, &kind, &schema, &Path::root());
    }
}

/// The type of a kind: in the package of the group and version, or in the only one of that version that names
/// no group. A version may define it as the type of another one.
fn root<'a>(packages: &'a Packages, group: &str, version: &str, kind: &str) -> Option<Struct<'a>> {
    let marked = |package: &Package, name: &str| {
        let marker = package.markers.iter().find(|marker| marker.is(name));
        marker.and_then(|marker| marker.value.as_deref()).map(|value| value.trim().to_owned())
    };
    let mut best: Vec<(bool, Struct<'a>)> = Vec::new();
    for package in packages.asked() {
        let named = marked(package, "groupName");
        let its_version = marked(package, "versionName").unwrap_or_else(|| package.name.clone());
        if its_version != version || named.as_deref().is_some_and(|named| named != group) {
            continue;
        }
        if let Some(declared) = package.types.get(kind)
            && let Shape::Struct(of) = packages.resolve(package, &declared.kind).shape
            && of.fields.iter().any(|field| field.is_embedded && field.name == "TypeMeta")
        {
            best.push((named.is_some(), of));
        }
    }
    let has_sure = best.iter().any(|(is_sure, _)| *is_sure);
    let mut fitting = best.into_iter().filter(|(is_sure, _)| *is_sure || !has_sure);
    match (fitting.next(), fitting.next()) {
        (Some((_, of)), None) => Some(of),
        _ => None,
    }
}

struct Compare<'a, 'r> {
    packages: &'a Packages,
    crd: &'a str,
    version: &'a str,
    is_by_controller_gen: bool,
    /// Fields that were reported: a type may be used at many places of a CRD.
    seen: BTreeSet<(&'static str, String)>,
    report: &'r mut Report,
}

impl<'a> Compare<'a, '_> {
    fn fields(&mut self, of: Struct<'a>, owner: &str, schema: &Schema, at: &Path) {
        let mut fields = Vec::new();
        of.each(self.packages, &mut |scope, field| fields.push((scope.clone(), field)));
        for (scope, field) in fields {
            let Some((name, property)) = field.json_name().and_then(|name| Some((name, schema.child(name)?)))
            else {
                continue;
            };
            let here = at.join(Step::Field(name.to_owned()));
            let resolved = self.packages.resolve_field(scope.clone(), field);
            self.field(scope.package, field, owner, &resolved, property, &here);
            self.below(owner, field, &resolved, property, &here);
        }
    }

    /// What is inside of a field, of its items or its values. The schema bounds how deep this leads.
    fn below(&mut self, owner: &str, field: &Field, resolved: &Resolved<'a>, schema: &Schema, at: &Path) {
        let name = match resolved.declared.last() {
            Some((_, declared)) => declared.name.clone(),
            None => format!("{owner}.{}", field.name),
        };
        self.shape(&name, resolved, schema, at);
    }

    fn shape(&mut self, name: &str, resolved: &Resolved<'a>, schema: &Schema, at: &Path) {
        let (of, schema, step) = match resolved.written() {
            Shape::Struct(inner) => return self.fields(inner.clone(), name, schema, at),
            Shape::List(of) => (*of, schema.items.as_deref(), Step::Items),
            Shape::Map(of) => (*of, schema.additional_schema(), Step::Values),
            _ => return,
        };
        let Some(schema) = schema else { return };
        let inner = self.packages.resolve(resolved.scope.clone(), of);
        let name = inner.declared.last().map_or(name, |(_, declared)| declared.name.as_str()).to_owned();
        self.shape(&name, &inner, schema, &at.join(step));
    }

    fn field(
        &mut self,
        package: &Package,
        field: &'a Field,
        owner: &str,
        resolved: &Resolved<'a>,
        schema: &Schema,
        at: &Path,
    ) {
        let marked = effective(self.packages, package, field, resolved);
        let (rule, message) = match (&marked, schema.default.as_deref()) {
            (Some((default, is_of_type)), None) => {
                if default.value.is_err() {
                    return;
                }
                let why = unread(default, *is_of_type);
                (&LACKS, format!("+{} has no default in the CRD at {at}{why}", default.source.marker()))
            }
            (None, Some(value)) => (
                &UNMARKED,
                format!("the CRD has the default {} at {at}; the field has no marker", shown(value)),
            ),
            (Some((default, is_of_type)), Some(value))
                if self.is_by_controller_gen && !unread(default, *is_of_type).is_empty() =>
            {
                let (value, marker) = (shown(value), default.source.marker());
                let why = unread(default, *is_of_type);
                (&UNMARKED, format!("the CRD has the default {value} at {at}, but not from +{marker}{why}"))
            }
            (Some((default, _)), Some(value)) => match &default.value {
                Ok(Some(own)) if !same(own, value) && !is_empty_list(own, value) => {
                    let (own, value) = (shown(own), shown(value));
                    (&DIFFERS, format!("the default is {own}, but {value} in the CRD at {at}"))
                }
                _ => return,
            },
            (None, None) => {
                let Some(unread) = resolved.declared.iter().find_map(|(_, of)| kubebuilders(of)) else {
                    return;
                };
                (
                    &LACKS,
                    format!(
                        "+{unread} of its type has no default in the CRD at {at}; controller-gen reads it on \
                         fields alone"
                    ),
                )
            }
        };
        let place = GoPlace {
            package: package.path.clone(),
            name: format!("{owner}.{}", field.name),
            at: field.at.clone(),
            crd: self.crd.to_owned(),
        };
        if self.seen.insert((rule.code, format!("{}:{}", place.at.file, place.at.line))) {
            self.report.place(rule, place, self.version, message);
        }
    }
}

/// The marker of controller-gen above a type, which reads it on fields alone.
fn kubebuilders(declaration: &Declaration) -> Option<&'static str> {
    let mut sources = declaration.markers.iter().filter_map(Source::of);
    sources.find(|source| *source == Source::Kubebuilder).map(Source::marker)
}

/// Why controller-gen does not take a marker in, where that is known.
fn unread(default: &MarkedDefault<'_>, is_of_type: bool) -> &'static str {
    match default.source {
        _ if is_of_type => "; controller-gen does not read markers of types",
        Source::Declarative => "; controller-gen does not read this marker",
        Source::Kubernetes if default.is_reference => "; controller-gen does not read references",
        _ => "",
    }
}

/// Controller-gen writes `[]` where the marker of a list has `{}`.
fn is_empty_list(own: &Value, value: &Value) -> bool {
    own.as_object().is_some_and(serde_json::Map::is_empty) && value.as_array().is_some_and(Vec::is_empty)
}
