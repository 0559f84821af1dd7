//! Texts of a form that Kubernetes has a name for: labels, subdomains, qualified names.
//! Where a schema's `format` accepts the same, this uses that check.
//!
//! Source: apiserver `pkg/cel/library/format.go`.

use kube_structural_schema::format;
use kube_structural_schema::names::{
    BYTES, dns_1035_label, dns_label, dns_subdomain, label_value, masked, qualified_name,
};

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
    (
        "dns1123Label",
        NamedFormat { name: "DNS1123Label", check: |text| dns_label(text, BYTES), regex_size: 30 },
    ),
    (
        "dns1123Subdomain",
        NamedFormat { name: "DNS1123Subdomain", check: |text| dns_subdomain(text, BYTES), regex_size: 60 },
    ),
    (
        "dns1035Label",
        NamedFormat { name: "DNS1035Label", check: |text| dns_1035_label(text, BYTES), regex_size: 30 },
    ),
    ("qualifiedName", NamedFormat { name: "QualifiedName", check: qualified_name, regex_size: 60 }),
    (
        "dns1123LabelPrefix",
        NamedFormat {
            name: "DNS1123LabelPrefix",
            check: |text| dns_label(&masked(text), BYTES),
            regex_size: 30,
        },
    ),
    (
        "dns1123SubdomainPrefix",
        NamedFormat {
            name: "DNS1123SubdomainPrefix",
            check: |text| dns_subdomain(&masked(text), BYTES),
            regex_size: 60,
        },
    ),
    (
        "dns1035LabelPrefix",
        NamedFormat {
            name: "DNS1035LabelPrefix",
            check: |text| dns_1035_label(&masked(text), BYTES),
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
