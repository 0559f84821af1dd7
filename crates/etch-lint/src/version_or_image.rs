//! ETCH012: defaults that are a version or an image.

use serde_json::Value;

use super::rule::{Finding, Report, Rule, Severity};
use super::site::each;
use super::subject::Subject;
use etch_core::api::follow_line;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};

pub(super) const RULE: Rule = Rule {
    code: "ETCH012",
    name: "version-or-image-default",
    severity: Severity::Warning,
    summary: "a default is a version or an image",
    help: "\
Such a default changes with nearly every release. Objects that never stored it change as soon as a user
applies the new CRD, before the new controller runs; objects that stored it keep the old version for ever, and
look as if their user had chosen it.

Leave the field empty and let the controller choose, and show its choice in the status. Not reported are
fields with an enum.

Where the default is meant to float, a DefaultsPolicy can have stored values follow it, as long as they have
no owner. List its path in `onChange`, as the finding shows it.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        // One of a few values that the schema lists is a choice, and pins nothing that could be released.
        let is_choice = site.schema.constraints.as_ref().is_some_and(|own| !own.allowed.is_empty());
        if let Some(default) = site.default().filter(|_| !is_choice) {
            let name = site.name().unwrap_or_default();
            look(default, name, &site.path(), &mut |path, what| {
                report.add(&version.name, path.clone(), format!("the default is {what}"));
            });
        }
    });
}

/// Whether a default is a version or an image, by its value and the field that it is the default of.
pub fn floats(path: &Path, default: &Value) -> bool {
    let name = path.steps().iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        _ => None,
    });
    let name = name.unwrap_or_default();
    default.as_str().is_some_and(|text| is_image(text, name) || is_version(text, name))
}

/// Adds to the findings about a CRD how stored values follow a default that floats, if a policy can name its
/// path.
pub fn suggest_follow(crd: &Json, findings: &mut [Finding]) {
    let mut floating = findings.iter_mut().filter(|finding| finding.rule.code == RULE.code).peekable();
    let Some(subject) = floating.peek().and_then(|_| Subject::read(crd).ok()) else { return };
    for finding in floating {
        let version = subject.versions.iter().find(|version| version.name == finding.version);
        // A text inside the default of an object has no line of its own.
        let mut is_default = false;
        version.iter().for_each(|version| {
            each(&version.schema, &mut |site| {
                is_default |= site.default().is_some_and(Value::is_string) && site.path() == finding.path;
            });
        });
        if let Some(line) = follow_line(&finding.path).filter(|_| is_default) {
            finding.message.push_str(&format!("; to have stored values follow it, add to onChange: {line}"));
        }
    }
}

/// Looks at the texts of a default, each with the name of its field.
fn look(default: &Value, name: &str, at: &Path, found: &mut dyn FnMut(&Path, &'static str)) {
    match default {
        Value::String(text) if is_image(text, name) => found(at, "an image with a tag"),
        Value::String(text) if is_version(text, name) => found(at, "a version"),
        Value::Array(items) => {
            items.iter().for_each(|item| look(item, name, &at.join(Step::Items), found));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                look(value, name, &at.join(Step::Field(name.clone())), found);
            }
        }
        _ => {}
    }
}

/// `registry.example.com:5000/team/app:1.2` or `app@sha256:…`; without a folder only where the field is
/// called so.
fn is_image(text: &str, field: &str) -> bool {
    let is_named = field.to_ascii_lowercase().contains("image");
    let (path, tag) = match text.split_once("@sha256:") {
        Some((path, digest)) => (path, digest),
        None => match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => return false,
        },
    };
    let is_word = |text: &str, more: &[char]| {
        !text.is_empty()
            && text
                .chars()
                .all(|each| each.is_ascii_alphanumeric() || "._-".contains(each) || more.contains(&each))
    };
    let is_tag = tag == "latest" || tag.contains(|each: char| each.is_ascii_digit());
    is_word(tag, &[])
        && is_tag
        && is_word(path, &['/', ':'])
        && !path.contains("//")
        && (is_named || path.contains('/') && path.contains('.') && !path.starts_with(['/', '.']))
}

/// `1.2.3`, `v1.2`, `v1.2.3-rc.1`: three numbers anywhere, fewer where the field is called so.
fn is_version(text: &str, field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    let is_protocol = ["tls", "ssl", "http", "protocol", "api"].iter().any(|word| field.contains(word));
    if is_protocol {
        return false;
    }
    let is_named = field.contains("version") || field.ends_with("tag") || field.contains("image");
    let bare = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let core = bare.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.iter().all(is_number)
        && match numbers.len() {
            3 => true,
            1 => is_named && bare.len() < text.len(),
            2 => is_named,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_versions_are_told_from_other_texts() {
        let cases = [
            ("image", "rabbitmq:4.1.3-management", "image"),
            ("sidecar", "ghcr.io/team/app:v1", "image"),
            ("x", "app.io/a/b@sha256:0123456789abcdef", "image"),
            ("image", "app:latest", "image"),
            ("image", "app", ""),
            ("url", "http://a.io/x:80", ""),
            ("address", "example.com:8080", ""),
            ("version", "1.2", "version"),
            ("version", "v1", "version"),
            ("tag", "v1.2.3-rc.1+x", "version"),
            ("anything", "1.2.3", "version"),
            ("multiplier", "1.5", ""),
            ("minTLSVersion", "1.2", ""),
            ("address", "10.0.0.0", ""),
            ("version", "latest", ""),
            ("interval", "1h", ""),
        ];
        for (field, text, expected) in cases {
            let what = if is_image(text, field) {
                "image"
            } else if is_version(text, field) {
                "version"
            } else {
                ""
            };
            assert_eq!(what, expected, "{field}: {text}");
        }
    }
}
