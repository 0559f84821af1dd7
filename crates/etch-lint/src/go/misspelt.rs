//! ETCH112: comments that look like markers of defaults, and that no generator reads.

use super::site::{self, Report};
use crate::go_types::{Marker, Packages, Place, Remark, Source, Spot};
use crate::rule::{GoPlace, Rule, Severity};
use crate::spelling::distance;
use etch_core::words::cut;

pub(super) const RULE: Rule = Rule {
    code: "ETCH112",
    name: "go-misspelt-marker",
    severity: Severity::Warning,
    summary: "a comment looks like the marker of a default, and no generator reads it",
    help: "\
Generators pass over markers that they do not know, so the schema has no default, and nothing fails. A marker
is a line of its own right above the field, or one comment above that: `//`, `+`, the name, `=` and the value.
Case counts, and no space may stand within the name or before the equals sign. `+kubebuilder:default:=1` is
read, and so is `+kubebuilder:default:value=1`, but not `+kubebuilder:default:1`. Above a type only
`+default=` is read.

Write the marker that the finding names: `+kubebuilder:default=`, `+default=` or `+k8s:default=`.",
    check: None,
};

/// How far a name may be from that of a marker, to be taken for it.
const FAR: usize = 2;

pub(super) fn check(packages: &Packages, report: &mut Report) {
    let add = |report: &mut Report, package: &str, name: &str, at: &Spot, message: String| {
        let (package, name, at) = (package.to_owned(), name.to_owned(), at.clone());
        report.place(&RULE, GoPlace { package, name, at, crd: String::new() }, "", message);
    };
    site::each(packages, &mut |site| {
        let package = &site.package.path;
        for (at, message) in misspelt(&site.field.markers).chain(misplaced(&site.field.remarks)) {
            add(report, package, &site.name, at, message);
        }
    });
    for package in packages.asked() {
        for declaration in package.types.values() {
            for (at, message) in misspelt(&declaration.markers).chain(above_type(&declaration.markers)) {
                add(report, &package.path, &declaration.name, at, message);
            }
        }
    }
}

fn misspelt(markers: &[Marker]) -> impl Iterator<Item = (&Spot, String)> {
    markers.iter().filter_map(|marker| {
        let meant = meant(marker)?.marker();
        Some((&marker.at, format!("+{} is no marker; did you mean +{meant}=?", shown(&marker.name))))
    })
}

/// controller-gen reads its own marker of a default on fields alone.
fn above_type(markers: &[Marker]) -> impl Iterator<Item = (&Spot, String)> {
    let is_own = |marker: &&Marker| Source::of(marker) == Some(Source::Kubebuilder);
    markers.iter().filter(is_own).map(|marker| {
        let message = "+kubebuilder:default stands above a type, and controller-gen reads it above fields \
            only; write it above the fields of the type, or +default= here";
        (&marker.at, message.to_owned())
    })
}

fn misplaced(remarks: &[Remark]) -> impl Iterator<Item = (&Spot, String)> {
    remarks.iter().filter_map(|remark| {
        let source = remark.text.strip_prefix('+').and_then(|text| {
            let marker = marker(text, &remark.at);
            Source::of(&marker).or_else(|| meant(&marker))
        });
        let message = match (remark.place, source) {
            (Place::Behind, Some(source)) => {
                format!("+{} stands behind the field: generators read markers above it only", source.marker())
            }
            (Place::Far, Some(source)) => {
                format!(
                    "+{} is two comments above the field: generators read no further than one",
                    source.marker()
                )
            }
            // Generators of Kubernetes read such a comment.
            (Place::Block, Some(Source::Kubebuilder)) => {
                "+kubebuilder:default stands between /* and */: controller-gen reads markers behind // only"
                    .to_owned()
            }
            (Place::Above, None) => lacks_plus(&remark.text).or_else(|| is_inside(&remark.text))?,
            _ => return None,
        };
        Some((&remark.at, message))
    })
}

/// `// kubebuilder:default=1`. A line that begins with `default=1` may be prose.
fn lacks_plus(text: &str) -> Option<String> {
    let source = [Source::Kubebuilder, Source::Declarative].into_iter().find(|source| {
        text.strip_prefix(source.marker()).is_some_and(|behind| behind.starts_with(['=', ':']))
    })?;
    Some(format!("a marker begins with a plus sign; did you mean +{}=?", source.marker()))
}

/// `// text +kubebuilder:default=1`. Prose that mentions a marker continues behind it.
fn is_inside(text: &str) -> Option<String> {
    let word = text.split_whitespace().next_back()?.strip_prefix('+')?;
    let source = Source::ALL.into_iter().find(|source| {
        word.strip_prefix(source.marker())
            .is_some_and(|behind| behind.trim_start_matches(':').starts_with('='))
    })?;
    Some(format!("+{} stands behind other text: a marker needs a line of its own", source.marker()))
}

fn marker(text: &str, at: &Spot) -> Marker {
    let (name, value) =
        text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
    Marker { name: name.to_owned(), value, at: at.clone() }
}

/// The marker that was probably meant by one that is not read.
fn meant(marker: &Marker) -> Option<Source> {
    if Source::of(marker).is_some() {
        return None;
    }
    let written = marker.name.trim_start_matches('+').trim().to_lowercase();
    let name: String = written.split_whitespace().collect();
    let is_near = |name: &str, other: &str| distance(name, other, FAR) <= FAR;
    let by_name = Source::ALL.into_iter().find(|source| {
        let exact = source.marker();
        // The value may follow without the equals sign. Behind a space it is prose if it continues.
        let behind = written.strip_prefix(exact);
        let has_value = behind.is_some_and(|behind| match behind.trim_start().chars().next() {
            Some(':' | '"' | '{' | '[' | '(' | '`' | '\'') => true,
            Some(_) => behind.starts_with(char::is_whitespace) && behind.split_whitespace().nth(1).is_none(),
            None => false,
        });
        name == exact
            || has_value
            || name.len() >= FAR + 4 && name.starts_with(&exact[..1]) && is_near(&name, exact)
    });
    by_name.or_else(|| {
        // `+kubebuilder:validation:Default`, `+kube-builder.default`
        let (group, last) = name.trim_end_matches(':').rsplit_once([':', '.', '-', '_', '/'])?;
        let first = group.split([':', '.', '/', '_']).next().unwrap_or_default();
        let is_default = last.len() > FAR + 2 && is_near(last, "default");
        if !is_default {
            None
        } else if is_near(first, "kubebuilder") {
            Some(Source::Kubebuilder)
        } else {
            (first == "k8s").then_some(Source::Declarative)
        }
    })
}

/// A name in a message, without what follows it.
fn shown(name: &str) -> String {
    const LONGEST: usize = 40;
    cut(name, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Option<Source> {
        meant(&marker(text, &Spot { file: "a.go".into(), line: 1 }))
    }

    #[test]
    fn markers_that_are_not_read_are_recognized() {
        for text in [
            "kubebuilder:defaul=1",
            "kubebuilder:defualt=1",
            "kubebuilder:defaults=1",
            "kubebuilder:Default=1",
            "Kubebuilder:default=1",
            "kubebulider:default=1",
            "kubebuilder:default:value",
            "kubebuilder:default:1",
            "kubebuilder:default::=1",
            "kubebuilder:default:a:b=1",
            "kubebuilder:default:",
            "kubebuilder:default 1",
            "kubebuilder:default\"a\"",
            "kubebuilder:default{}",
            "kubebuilder:default = 1",
            " kubebuilder:default=1",
            "+kubebuilder:default=1",
            "kubebuilder: default=1",
            "kubebuilder:validation:default=1",
            "kubebuilder:validation:Default:=1",
            "kubebuilder.default=1",
            "kubebuilder-default=1",
            "kube-builder:default=1",
            "kubebuilderdefault=1",
        ] {
            assert_eq!(source(text), Some(Source::Kubebuilder), "{text}");
        }
        for text in [
            "defaut=1",
            "Default=1",
            "default:1",
            "default: 1",
            "default 1",
            "default =1",
            "defualt=\"a\"",
            "defaults=1",
        ] {
            assert_eq!(source(text), Some(Source::Kubernetes), "{text}");
        }
        for text in ["k8s:defaul=1", "k8s:Default=1", "k8s.default=1", "k8s:default 1"] {
            assert_eq!(source(text), Some(Source::Declarative), "{text}");
        }
    }

    #[test]
    fn other_markers_and_those_that_are_read_are_left_alone() {
        for text in [
            "kubebuilder:default=1",
            "kubebuilder:default:=1",
            "kubebuilder:default:value=1",
            "kubebuilder:default",
            "default=1",
            "default",
            "k8s:default=1",
            "default values are described elsewhere",
            "optional",
            "required",
            "result=1",
            "listMapKey=default",
            "k8s:defaulter-gen=TypeMeta",
            "k8s:defaulter-gen-input=k8s.io/api/core/v1",
            "k8s:deepcopy-gen=true",
            "kubebuilder:validation:Enum=default;other",
            "kubebuilder:object:root=true",
            "kubebuilder:printcolumn:name=default",
            "operator-sdk:default=1",
            "genclient",
        ] {
            assert_eq!(source(text), None, "{text}");
        }
    }
}
