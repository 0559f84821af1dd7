//! A field of a struct with all that its default depends on.

use serde_json::Value;

use crate::go_types::{self, Declaration, Field, MarkedDefault, Package, Packages, Resolved, Source, Type};
use crate::rule::{Finding, GoPlace, Rule};
use kube_structural_schema::path::Path;

/// How deep structs without a name may be nested.
const DEEPEST: usize = 64;

/// A field that JSON has.
pub(super) struct Site<'a> {
    pub(super) packages: &'a Packages,
    /// The package in which it is declared.
    pub(super) package: &'a Package,
    /// The declared type around it.
    pub(super) declaration: &'a Declaration,
    /// `Type.Field`
    pub(super) name: String,
    pub(super) field: &'a Field,
    pub(super) resolved: Resolved<'a>,
}

impl<'a> Site<'a> {
    /// The strongest default: one of its own markers, or else of the nearest type that has any.
    pub(super) fn default(&self) -> Option<MarkedDefault<'a>> {
        effective(self.packages, self.package, self.field, &self.resolved).map(|(default, _)| default)
    }

    /// Its value, if that is known.
    pub(super) fn value(&self) -> Option<Value> {
        self.default()?.value.ok().flatten().map(|json| json.into_inner())
    }

    /// Whether it is what every object and template has.
    pub(super) fn is_spec_or_status(&self) -> bool {
        self.declaration.is_object() && matches!(self.field.json_name(), Some("spec" | "status"))
    }
}

/// The strongest default of a field, and whether it comes from a type.
pub(super) fn effective<'a>(
    packages: &'a Packages,
    package: &Package,
    field: &'a Field,
    resolved: &Resolved<'a>,
) -> Option<(MarkedDefault<'a>, bool)> {
    let first =
        |markers, package: &Package| go_types::defaults(markers, packages, &package.path).into_iter().next();
    if let Some(own) = first(&field.markers, package) {
        return Some((own, false));
    }
    // Controller-gen reads its own marker of a default on fields alone.
    let of_type = |markers, package: &Package| {
        let mut all = go_types::defaults(markers, packages, &package.path).into_iter();
        all.find(|default| default.source != Source::Kubebuilder)
    };
    let declared = resolved.declared.iter().find_map(|(there, type_)| of_type(&type_.markers, there));
    declared.map(|default| (default, true))
}

/// Visits the fields of all structs in the requested packages.
pub(super) fn each<'a>(packages: &'a Packages, visit: &mut dyn FnMut(&Site<'a>)) {
    for package in packages.asked() {
        for declaration in package.types.values() {
            let walk = Walk { packages, package, declaration };
            walk.below(&declaration.kind, &declaration.name, 0, visit);
        }
    }
}

struct Walk<'a> {
    packages: &'a Packages,
    package: &'a Package,
    declaration: &'a Declaration,
}

impl<'a> Walk<'a> {
    fn below(&self, kind: &'a Type, name: &str, depth: usize, visit: &mut dyn FnMut(&Site<'a>)) {
        match kind {
            Type::Pointer(of) | Type::List(of) | Type::Array(of, _) | Type::Map(of) if depth < DEEPEST => {
                self.below(of, name, depth + 1, visit);
            }
            // JSON lacks the fields of a struct that an embedded type writes.
            Type::Struct(_) if self.packages.resolve(self.package, kind).is_written_by_method() => {}
            Type::Struct(fields) if depth < DEEPEST => {
                for field in fields {
                    let name = format!("{name}.{}", field.name);
                    if is_of_api(field) {
                        let resolved = self.packages.resolve_field(self.package, field);
                        let Self { packages, package, declaration } = *self;
                        visit(&Site { packages, package, declaration, name: name.clone(), field, resolved });
                    }
                    self.below(&field.kind, &name, depth + 1, visit);
                }
            }
            _ => {}
        }
    }
}

/// Whether it is meant for JSON: types for a program's own use have no tags.
fn is_of_api(field: &Field) -> bool {
    let is_marked = || field.markers.iter().any(|marker| go_types::Source::of(marker).is_some());
    field.json_name().is_some() && (field.tag.is_some() || is_marked())
}

/// Collects findings.
#[derive(Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    /// Something about a field.
    pub(super) fn field(&mut self, rule: &'static Rule, site: &Site<'_>, message: impl Into<String>) {
        let place = GoPlace {
            package: site.package.path.clone(),
            name: site.name.clone(),
            at: site.field.at.clone(),
            crd: String::new(),
        };
        self.place(rule, place, "", message);
    }

    /// Something about a place, compared with a version of a CRD.
    pub(super) fn place(
        &mut self,
        rule: &'static Rule,
        place: GoPlace,
        version: &str,
        message: impl Into<String>,
    ) {
        self.0.push(Finding { go: Some(place), ..Finding::new(rule, version, Path::root(), message) });
    }

    /// What was found, in the order of files, lines and codes, each once.
    pub(super) fn findings(self) -> Vec<Finding> {
        let mut findings = self.0;
        findings.sort_by_cached_key(|finding| {
            let place = finding.go.as_ref();
            let spot = place.map(|place| (place.at.file.clone(), place.at.line, place.crd.clone()));
            (spot, finding.rule.code, finding.version.clone(), finding.message.clone())
        });
        findings.dedup_by(|a, b| {
            a.go == b.go && a.rule.code == b.rule.code && a.version == b.version && a.message == b.message
        });
        findings
    }
}
