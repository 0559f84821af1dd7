//! ETCH106 to ETCH108: markers that give no default, a wrong one, or two.

use std::borrow::Cow;

use serde_json::Value;

use super::site::{self, Report};
use crate::go_types::{self, MarkedDefault, Marker, Package, Packages, Resolved, Shape, Source, Type, Whole};
use crate::rule::{GoPlace, Rule, Severity};
use crate::site::shown;
use kube_structural_schema::json::same;

pub(super) const UNREADABLE: Rule = Rule {
    code: "ETCH106",
    name: "go-unreadable-default",
    severity: Severity::Error,
    summary: "a marker of a default cannot be read",
    help: "\
`+default=` and `+k8s:default=` take JSON in one line (KEP-1929, Marker format), or `ref(Name)` for a
constant. A string needs double quotes. `+kubebuilder:default=` takes controller-gen's own syntax: strings may
omit the quotes, and lists are in braces. Generators fail on a value that they cannot read, or omit the
default.

Write the value in the syntax of the marker: `+default=\"a\"`, `+default=[\"a\"]`,
`+kubebuilder:default={\"a\"}`. In both, whole numbers are plain decimal digits: controller-gen takes 0644 for
644, and fails on 0x1F, 0o17, 0b1 and 1_000.",
    check: None,
};

pub(super) const MISFIT: Rule = Rule {
    code: "ETCH107",
    name: "go-misfit-default",
    severity: Severity::Error,
    summary: "a default does not fit the Go type of its field, or lacks a required field",
    help: "\
The server refuses a CRD whose default does not have the type of its field. It may accept one that the Go type
cannot hold, such as 256 in uint8 or \"soon\" in metav1.Duration: then the program that reads it fails, or
loses items of a list. A frequent cause is `+kubebuilder:default=[]`, which controller-gen reads as a string:
its lists are in braces. The server also refuses a default that lacks a required field, even if that field has
a default itself.

Write a value of the field's type: an empty list is `+kubebuilder:default={}` there, and `+default=[]`
elsewhere, also for a list that is a type with a name, if controller-gen is older than 0.23.",
    check: None,
};

pub(super) const DISAGREE: Rule = Rule {
    code: "ETCH108",
    name: "go-defaults-disagree",
    severity: Severity::Warning,
    summary: "two markers give the same field different defaults",
    help: "\
Each generator reads its own markers, so the schema and the defaulting functions differ; if controller-gen
reads both `+default` and `+kubebuilder:default`, the latter wins. KEP-1929 (Summary) intends `+default` to
serve both. If the same marker is there twice, controller-gen takes the last one and reports nothing.

Write one marker, or the same value in both.",
    check: None,
};

/// How deep values are compared with types.
const DEEPEST: usize = 64;

pub(super) fn check(packages: &Packages, report: &mut Report) {
    site::each(packages, &mut |site| {
        let resolved = packages.resolve_field(site.package, site.field);
        let holder = Holder { packages, package: site.package, name: &site.name, resolved };
        holder.check(&site.field.markers, report);
    });
    for package in packages.asked() {
        for declaration in package.types.values() {
            let resolved = packages.resolve(package, &declaration.kind);
            let holder = Holder { packages, package, name: &declaration.name, resolved };
            holder.check(&declaration.markers, report);
        }
    }
}

/// What markers stand above: a field or a type.
struct Holder<'a> {
    packages: &'a Packages,
    package: &'a Package,
    name: &'a str,
    resolved: Resolved<'a>,
}

impl Holder<'_> {
    fn check(&self, markers: &[Marker], report: &mut Report) {
        let defaults = go_types::defaults(markers, self.packages, &self.package.path);
        let mut first: Option<(&MarkedDefault<'_>, &Value)> = None;
        for (index, default) in defaults.iter().enumerate() {
            let value = match &default.value {
                Err(go_types::Unreadable(problem)) => {
                    self.report(&UNREADABLE, default, problem.clone(), report);
                    continue;
                }
                Ok(None) => continue,
                Ok(Some(value)) => value,
            };
            if default.is_cut {
                let problem = format!(
                    "controller-gen reads {}: it drops a word before a space, unless it has quotes",
                    shown(value)
                );
                self.report(&UNREADABLE, default, problem, report);
            }
            // Of a marker that is there twice, no schema has the first value.
            let is_lost = defaults[..index].iter().any(|stronger| stronger.source == default.source);
            if let Some(wrong) = self.misfit(default, value).filter(|_| !is_lost) {
                self.report(&MISFIT, default, wrong, report);
            }
            match first {
                Some((stronger, other)) if !same(other, value) => {
                    let text = format!(
                        "the default is {}, but {} by +{} in line {}",
                        shown(value),
                        shown(other),
                        stronger.source.marker(),
                        stronger.marker.at.line
                    );
                    self.report(&DISAGREE, default, text, report);
                }
                Some(_) => {}
                None => first = Some((default, value)),
            }
        }
    }

    fn misfit(&self, default: &MarkedDefault<'_>, value: &Value) -> Option<String> {
        // Controller-gen writes an empty list where a list has an empty map.
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        let is_list = matches!(self.resolved.shape, Shape::List(_));
        if default.source == Source::Kubebuilder && is_empty && is_list {
            if self.resolved.declared.is_empty() {
                return None;
            }
            if self.resolved.length.is_none() {
                let text = "controller-gen before 0.23 writes {} for a list that is a type with a name; \
                    write +default=[]";
                return Some(text.to_owned());
            }
        }
        let is_crd = self.package.is_kubebuilder && default.source != Source::Declarative;
        let incomplete =
            || is_crd.then(|| incomplete(self.packages, &self.resolved, value, DEEPEST)).flatten();
        let misfit = misfit(self.packages, &self.resolved, value, DEEPEST).or_else(incomplete);
        let (at, expected) = misfit?;
        let at = if at.is_empty() { at } else { format!(" at {}", at.trim_start_matches('.')) };
        Some(format!("the default {} is not {expected}{at}", shown(value)))
    }

    fn report(&self, rule: &'static Rule, default: &MarkedDefault<'_>, message: String, report: &mut Report) {
        let place = GoPlace {
            package: self.package.path.clone(),
            name: self.name.to_owned(),
            at: default.marker.at.clone(),
            crd: String::new(),
        };
        report.place(rule, place, "", format!("+{}: {message}", default.source.marker()));
    }
}

/// Where a value does not fit a type, and what is expected there.
fn misfit(
    packages: &Packages,
    resolved: &Resolved<'_>,
    value: &Value,
    depth: usize,
) -> Option<(String, Cow<'static, str>)> {
    let here = |fits: bool, expected| (!fits).then_some((String::new(), Cow::Borrowed(expected)));
    let below = |kind: &Type, value: &Value| match depth.checked_sub(1) {
        Some(depth) if !value.is_null() => {
            misfit(packages, &packages.resolve(resolved.scope.clone(), kind), value, depth)
        }
        _ => None,
    };
    if let (Some(format), Value::String(text)) = (resolved.format, value) {
        return here(format.fits(text), format.name());
    }
    match &resolved.shape {
        Shape::Text | Shape::Bytes => here(value.is_string(), "a string"),
        Shape::Bool => here(value.is_boolean(), "a boolean"),
        Shape::Integer(whole) => integer(*whole, value).map(|expected| (String::new(), expected)),
        Shape::IntegerOrText => {
            let fits = value.is_string() || value.as_f64().is_some_and(|number| number.fract() == 0.0);
            here(fits, "an integer or a string")
        }
        Shape::Float => here(value.is_number(), "a number"),
        Shape::List(of) => match value {
            Value::Array(items) => match resolved.length(packages) {
                Some(length) if items.len() as u64 > length => {
                    Some((String::new(), format!("a list of at most {length} items").into()))
                }
                _ => items.iter().enumerate().find_map(|(index, item)| {
                    below(of, item).map(|(at, expected)| (format!("[{index}]{at}"), expected))
                }),
            },
            _ => here(false, "a list"),
        },
        Shape::Map(of) => match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                below(of, value).map(|(at, expected)| (format!(".{name}{at}"), expected))
            }),
            _ => here(false, "an object"),
        },
        Shape::Struct(_) => match (resolved.object(), value) {
            (None, _) => None,
            (Some(inner), Value::Object(fields)) => fields.iter().find_map(|(name, value)| {
                let (found, is_complete) = inner.field(packages, name);
                let Some((scope, field)) = found else {
                    return is_complete.then(|| (format!(".{name}"), "a field of the struct".into()));
                };
                let depth = depth.checked_sub(1).filter(|_| !value.is_null())?;
                let resolved = packages.resolve_field(scope, field);
                misfit(packages, &resolved, value, depth)
                    .map(|(at, expected)| (format!(".{name}{at}"), expected))
            }),
            _ => here(false, "an object"),
        },
        Shape::Custom | Shape::Unknown => None,
    }
}

/// Where a value lacks a field that its struct requires: the server does not count the field's own default.
fn incomplete(
    packages: &Packages,
    resolved: &Resolved<'_>,
    value: &Value,
    depth: usize,
) -> Option<(String, Cow<'static, str>)> {
    let below = |at: String, resolved: &Resolved<'_>, value: &Value| {
        let (end, expected) = incomplete(packages, resolved, value, depth.checked_sub(1)?)?;
        Some((at + &end, expected))
    };
    match (&resolved.shape, value) {
        (Shape::List(of), Value::Array(items)) => {
            let of = packages.resolve(resolved.scope.clone(), of);
            items.iter().enumerate().find_map(|(index, item)| below(format!("[{index}]"), &of, item))
        }
        (Shape::Map(of), Value::Object(fields)) => {
            let of = packages.resolve(resolved.scope.clone(), of);
            fields.iter().find_map(|(name, value)| below(format!(".{name}"), &of, value))
        }
        (Shape::Struct(_), Value::Object(fields)) => {
            let mut found = None;
            resolved.object()?.each(packages, &mut |scope, field| {
                let Some(name) = field.json_name().filter(|_| found.is_none()) else { return };
                found = match fields.get(name) {
                    Some(value) => {
                        below(format!(".{name}"), &packages.resolve_field(scope.clone(), field), value)
                    }
                    // Controller-gen makes no schema of a generic type.
                    None if !scope.is_generic() && field.is_required(scope.package) => {
                        Some((String::new(), format!("an object with the required field {name}").into()))
                    }
                    None => None,
                };
            });
            found
        }
        _ => None,
    }
}

/// What is expected instead of a value that is no whole number, or not one that a type holds.
fn integer(whole: Whole, value: &Value) -> Option<Cow<'static, str>> {
    match value {
        Value::Number(number) if whole.holds(number) => None,
        Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {
            Some(format!("an integer from {} to {}", whole.least, whole.largest).into())
        }
        _ => Some("an integer".into()),
    }
}
