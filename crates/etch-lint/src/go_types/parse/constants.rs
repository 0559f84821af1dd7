//! Constants with a literal value.
//! None is computed.

use serde_json::{Number, Value};
use tree_sitter::Node;

use super::source::Source;
use crate::go_types::{Constant, Package, unquote};

/// How deep conversions and parentheses may be nested.
const DEEPEST: usize = 16;

/// Reads the constants of one specification.
pub(super) fn read(source: &Source<'_>, spec: Node<'_>, package: &mut Package) {
    let mut cursor = spec.walk();
    let names: Vec<_> = spec
        .children_by_field_name("name", &mut cursor)
        .filter(|name| name.kind() == "identifier")
        .map(|name| source.text(name).to_owned())
        .collect();
    let values = spec.child_by_field_name("value");
    for (index, name) in names.into_iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let value = values.and_then(|values| values.named_child(index));
        let constant = value.map_or(Constant::Computed, |value| constant(source, value, 0));
        package.constants.entry(name).or_insert(constant);
    }
}

fn constant(source: &Source<'_>, node: Node<'_>, depth: usize) -> Constant {
    let text = source.text(node);
    let inner = |node: Option<Node<'_>>| match node {
        Some(node) if depth < DEEPEST => constant(source, node, depth + 1),
        _ => Constant::Computed,
    };
    match node.kind() {
        "interpreted_string_literal" | "raw_string_literal" => {
            unquote(text).map_or(Constant::Computed, |text| Constant::Literal(Value::String(text)))
        }
        "int_literal" => whole(text).map_or(Constant::Computed, |number| Constant::Literal(number.into())),
        "float_literal" => {
            let number = text.replace('_', "").parse().ok().and_then(Number::from_f64);
            number.map_or(Constant::Computed, |number| Constant::Literal(Value::Number(number)))
        }
        "true" | "false" => Constant::Literal(Value::Bool(node.kind() == "true")),
        "identifier" if text != "iota" => Constant::Reference(source.own.to_owned(), text.to_owned()),
        "selector_expression" => {
            let part = |name| node.child_by_field_name(name).map(|part| source.text(part));
            let package = part("operand").and_then(|qualifier| source.import(qualifier));
            match (package, part("field")) {
                (Some(package), Some(name)) => Constant::Reference(package.to_owned(), name.to_owned()),
                _ => Constant::Computed,
            }
        }
        "parenthesized_expression" => inner(node.named_child(0)),
        // `Protocol("TCP")`
        "call_expression" | "type_conversion_expression" => {
            let arguments = node.child_by_field_name("arguments");
            match arguments.filter(|arguments| arguments.named_child_count() == 1) {
                Some(arguments) => inner(arguments.named_child(0)),
                None => inner(node.child_by_field_name("operand")),
            }
        }
        "unary_expression" => match inner(node.child_by_field_name("operand")) {
            Constant::Literal(Value::Number(number)) if text.starts_with('-') => negative(&number),
            _ => Constant::Computed,
        },
        _ => Constant::Computed,
    }
}

fn negative(number: &Number) -> Constant {
    let negative = match number.as_i64() {
        Some(whole) => whole.checked_neg().map(Number::from),
        None => number.as_f64().and_then(|float| Number::from_f64(-float)),
    };
    negative.map_or(Constant::Computed, |number| Constant::Literal(Value::Number(number)))
}

fn whole(text: &str) -> Option<i64> {
    let plain = text.replace('_', "").to_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let found = radix.iter().find_map(|(prefix, radix)| Some((plain.strip_prefix(prefix)?, *radix)));
    match found {
        Some((digits, radix)) => i64::from_str_radix(digits, radix).ok(),
        None if plain.len() > 1 && plain.starts_with('0') => i64::from_str_radix(&plain, 8).ok(),
        None => plain.parse().ok(),
    }
}
