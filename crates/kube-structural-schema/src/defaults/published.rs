//! `published.json`: every example of the documents that define the defaulting of CRDs, by its section, with
//! the answer they give.
//!
//! The documents are the KEP "Defaulting for Custom Resources" (20190426-crd-defaulting), KEP-1929 (Built-in
//! declarative defaults), and "Extend the Kubernetes API with CustomResourceDefinitions", sections
//! "Defaulting" and "Defaulting and Nullable". Where a later document overrules an earlier one, or an example
//! has a slip, the case notes it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{laws, read};
use crate::compile::Compiled;
use crate::json::Json;
use crate::schema::Schema;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    name: String,
    schema: Value,
    stored: Value,
    read: Json,
    /// What is different from the document.
    #[serde(default)]
    note: String,
}

fn examples() -> BTreeMap<String, Vec<Example>> {
    serde_json::from_str(include_str!("published.json")).expect("well-formed examples")
}

fn holds(section: &str) {
    let examples = examples().remove(section).expect("a section of the file");
    assert!(!examples.is_empty(), "{section}");
    for Example { name, schema, stored, read: expected, note } in examples {
        let schema = Schema::parse(&schema).expect("a schema");
        let compiled = Compiled::new(&schema);
        let mut object = Json::from(stored.clone());
        read(&mut object, &schema, &compiled, &mut |_| {}).expect("readable");
        assert_eq!(object, expected, "{section}, {name} {note}");
        laws::hold(&compiled, &stored, &name);
    }
}

/// One test for each section, so that it has its name.
macro_rules! sections {
    ($($section:ident)*) => {
        const SECTIONS: &[&str] = &[$(stringify!($section)),*];
        $(
            #[test]
            fn $section() {
                holds(stringify!($section));
            }
        )*
    };
}

sections! {
    crd_defaulting_kep_summary
    crd_defaulting_kep_1_default_in_the_undefined_case
    crd_defaulting_kep_2_no_defaulting
    crd_defaulting_kep_3_array_default_in_the_undefined_case
    crd_defaulting_kep_4_top_down_defaulting
    kep_1929_changes_to_crd_normalization
    kep_1929_non_pointer_structs
    kep_1929_struct_pointers
    kep_1929_non_pointer_scalar_fields
    kep_1929_lists
    kep_1929_lists_without_default
    kep_1929_string_maps
    kep_1929_string_maps_without_default
    kep_1929_marker_format
    crd_page_defaulting
    crd_page_defaulting_and_nullable
}

#[test]
fn each_section_of_the_file_is_tested() {
    let mut tested = SECTIONS.to_vec();
    tested.sort_unstable();
    assert!(examples().keys().eq(tested.iter()));
}
