//! Texts of a form that Kubernetes has a name for: labels, subdomains, qualified names.
//! Where a schema's `format` accepts the same, this uses that check.
//!
//! Source: apiserver `pkg/cel/library/format.go`, apimachinery `pkg/api/validate/content`.

use kube_structural_schema::format;

use crate::kind::{Kind, downcast};

/// A form that texts can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedFormat {
    name: &'static str,
    /// What is wrong with a text; nothing where it has the form.
    check: fn(&str) -> Vec<String>,
    /// The length of the expression that upstream takes for the price of a check.
    pub(crate) regex_size: usize,
}

/// The formats, by the name of their function and of `format.named()`.
pub(crate) static FORMATS: [(&str, NamedFormat); 13] = [
    ("dns1123Label", NamedFormat { name: "DNS1123Label", check: dns1123_label, regex_size: 30 }),
    ("dns1123Subdomain", NamedFormat { name: "DNS1123Subdomain", check: dns1123_subdomain, regex_size: 60 }),
    ("dns1035Label", NamedFormat { name: "DNS1035Label", check: dns1035_label, regex_size: 30 }),
    ("qualifiedName", NamedFormat { name: "QualifiedName", check: qualified_name, regex_size: 60 }),
    (
        "dns1123LabelPrefix",
        NamedFormat {
            name: "DNS1123LabelPrefix",
            check: |text| dns1123_label(&masked(text)),
            regex_size: 30,
        },
    ),
    (
        "dns1123SubdomainPrefix",
        NamedFormat {
            name: "DNS1123SubdomainPrefix",
            check: |text| dns1123_subdomain(&masked(text)),
            regex_size: 60,
        },
    ),
    (
        "dns1035LabelPrefix",
        NamedFormat {
            name: "DNS1035LabelPrefix",
            check: |text| dns1035_label(&masked(text)),
            regex_size: 30,
        },
    ),
    ("labelValue", NamedFormat { name: "LabelValue", check: label_value, regex_size: 40 }),
    (
        "uri",
        NamedFormat {
            name: "URI",
            check: |text| unless(is_schema_format("uri", text), "not a URI"),
            regex_size: 1103,
        },
    ),
    (
        "uuid",
        NamedFormat {
            name: "uuid",
            check: |text| unless(is_schema_format("uuid", text), "does not match the UUID format"),
            regex_size: 70,
        },
    ),
    (
        "byte",
        NamedFormat {
            name: "byte",
            check: |text| unless(is_schema_format("byte", text), "invalid base64"),
            regex_size: 84,
        },
    ),
    (
        "date",
        NamedFormat {
            name: "date",
            check: |text| unless(is_schema_format("date", text), "invalid date"),
            regex_size: 71,
        },
    ),
    (
        "datetime",
        NamedFormat {
            name: "datetime",
            check: |text| unless(is_schema_format("datetime", text), "invalid datetime"),
            regex_size: 71,
        },
    ),
];

impl NamedFormat {
    /// What is wrong with a text; nothing where it has the form.
    pub(crate) fn problems(&self, text: &str) -> Vec<String> {
        (self.check)(text)
    }
}

impl Kind for NamedFormat {
    fn type_name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        Some(self.name == downcast::<Self>(other)?.name)
    }
}

fn unless(fits: bool, wrong: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![wrong.to_owned()] }
}

/// Whether a text is of a `format` that schemas know as well.
fn is_schema_format(name: &str, text: &str) -> bool {
    format::check(name).is_some_and(|check| check(text))
}

/// A name that ends in a dash may be followed by more; upstream looks at it with its last two characters
/// replaced.
fn masked(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => name.to_owned(),
    }
}

fn is_label(text: &str, first: fn(u8) -> bool) -> bool {
    let last = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (Some(start), Some(end)) = (text.bytes().next(), text.bytes().next_back()) else { return false };
    first(start) && last(end) && text.bytes().all(|b| last(b) || b == b'-')
}

fn is_dns1123(text: &str) -> bool {
    is_label(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    unless(text.len() <= max, &format!("must be no more than {max} bytes"))
}

fn dns1123_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 63);
    if !is_dns1123(text) {
        wrong.push(if text.split('.').all(is_dns1123) {
            "must not contain dots".to_owned()
        } else {
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
             with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned()
        });
    }
    wrong
}

fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 253);
    wrong.extend(unless(
        text.split('.').all(is_dns1123),
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
         end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ));
    wrong
}

fn dns1035_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 63);
    wrong.extend(unless(
        is_label(text, |b| b.is_ascii_lowercase()),
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and \
         end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')",
    ));
    wrong
}

fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let (Some(start), Some(end)) = (text.bytes().next(), text.bytes().next_back()) else { return false };
    start.is_ascii_alphanumeric() && end.is_ascii_alphanumeric() && text.bytes().all(inner)
}

fn qualified_name(text: &str) -> Vec<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let parts: Vec<&str> = text.split('/').collect();
    let mut wrong = Vec::new();
    let name = match parts[..] {
        [name] => name,
        ["", name] => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            wrong.extend(dns1123_subdomain(prefix).into_iter().map(|wrong| format!("prefix part {wrong}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(too_long(name, 63).into_iter().map(|wrong| format!("name part {wrong}")));
    }
    wrong.extend(unless(is_name(name), &format!("name part {FORM}")));
    wrong
}

fn label_value(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 63);
    wrong.extend(unless(
        text.is_empty() || is_name(text),
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and \
         end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
         '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ));
    wrong
}
