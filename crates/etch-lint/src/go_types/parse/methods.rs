//! The methods by which types write and read their JSON.
//! Of their bodies only counts what zero values may be written as.

use tree_sitter::Node;

use super::source::Source;
use crate::go_types::{Package, Writer, unquote};

/// The methods by which a type takes its JSON, or its schema, into its own hands.
const OWN_JSON: [&str; 5] =
    ["MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "OpenAPISchemaType"];

/// Packages whose functions give back what they are given, in another form. `fmt` calls methods.
const PLAIN: [&str; 5] = ["bytes", "encoding/json", "errors", "strconv", "strings"];

/// Adds a method to its type.
pub(super) fn read(source: &Source<'_>, node: Node<'_>, package: &mut Package) {
    let Some(name) = node.child_by_field_name("name").map(|name| source.text(name)) else { return };
    if !OWN_JSON.contains(&name) {
        return;
    }
    let receiver = node.child_by_field_name("receiver").and_then(|list| list.named_child(0));
    let mut kind = receiver.and_then(|receiver| receiver.child_by_field_name("type"));
    if let Some(pointer) = kind.filter(|kind| kind.kind() == "pointer_type") {
        kind = pointer.named_child(0);
    }
    if let Some(generic) = kind.filter(|kind| kind.kind() == "generic_type") {
        kind = generic.child_by_field_name("type");
    }
    let Some(kind) = kind.filter(|kind| kind.kind() == "type_identifier") else { return };
    let methods = package.custom.entry(source.text(kind).to_owned()).or_default();
    let body = node.child_by_field_name("body");
    let writer = || {
        let body = body.filter(|body| name == "MarshalText" || !may_write_null(source.text(*body)))?;
        let mut writer = Writer { is_plain: true, ..Writer::default() };
        examine(source, body, &mut writer);
        Some(writer)
    };
    match name {
        "MarshalJSON" => methods.writer = writer(),
        // The encoder prefers the other one.
        "MarshalText" if !methods.is_writer => methods.writer = writer(),
        "MarshalText" => {}
        _ => return,
    }
    methods.is_writer = true;
}

/// Whether the body of a `MarshalJSON` may write null: by that word, by another such method, or by handing a
/// field or variable, which may be a pointer, to the encoder.
fn may_write_null(body: &str) -> bool {
    let may_be_nil = |argument: &str| {
        let argument = argument.split(')').next().unwrap_or_default();
        !argument.contains('(')
            && !argument.starts_with(|first: char| first.is_uppercase() || matches!(first, '"' | '`'))
    };
    body.contains("null") || body.contains("MarshalJSON(") || body.split("Marshal(").skip(1).any(may_be_nil)
}

fn examine(source: &Source<'_>, body: Node<'_>, writer: &mut Writer) {
    let mut left = vec![body];
    while let Some(node) = left.pop() {
        let text = source.text(node);
        match node.kind() {
            "interpreted_string_literal" | "raw_string_literal" => writer.literals.extend(unquote(text)),
            "identifier" => drop(writer.names.insert(text.to_owned())),
            "index_expression" => writer.is_plain = false,
            "call_expression" => {
                let function = node.child_by_field_name("function");
                writer.is_plain &= function.is_some_and(|function| is_plain(source, function));
            }
            _ => {}
        }
        let mut cursor = node.walk();
        left.extend(node.named_children(&mut cursor));
    }
}

fn is_plain(source: &Source<'_>, function: Node<'_>) -> bool {
    const BUILT_IN: [&str; 5] = ["append", "bool", "len", "make", "string"];
    match function.kind() {
        "identifier" => {
            let name = source.text(function);
            let is_number = ["int", "uint", "float"].iter().any(|prefix| name.starts_with(prefix));
            is_number || BUILT_IN.contains(&name)
        }
        "selector_expression" => {
            let operand = function.child_by_field_name("operand").map(|operand| source.text(operand));
            operand.and_then(|name| source.import(name)).is_some_and(|path| PLAIN.contains(&path))
        }
        "parenthesized_expression" => true,
        _ => false,
    }
}
