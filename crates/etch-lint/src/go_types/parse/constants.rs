//! Constants as they are written.
//! `constant` computes them.

use serde_json::{Number, Value};
use tree_sitter::Node;

use super::source::Source;
use crate::go_types::{Constant, Package, Type, unquote};

/// How deep expressions may be nested.
const DEEPEST: usize = 64;

/// Reads the constants of one declaration; `kind` reads their types.
pub(super) fn read(
    source: &Source<'_>,
    declaration: Node<'_>,
    package: &mut Package,
    kind: &dyn Fn(&Source<'_>, Node<'_>) -> Type,
) {
    let mut cursor = declaration.walk();
    let specs = declaration.named_children(&mut cursor).filter(|spec| spec.kind() == "const_spec");
    let mut last = None;
    for (iota, spec) in specs.enumerate() {
        let source = Source { iota, ..source.clone() };
        // One without a value repeats the expression before, with its own `iota`.
        let with_value = spec.child_by_field_name("value").map(|_| spec).or(last);
        last = with_value;
        let part = |name| with_value.and_then(|spec| spec.child_by_field_name(name));
        let mut cursor = spec.walk();
        let names = spec.children_by_field_name("name", &mut cursor);
        for (index, name) in names.filter(|name| name.kind() == "identifier").enumerate() {
            let value = u32::try_from(index).ok().and_then(|index| part("value")?.named_child(index));
            let value = value.map_or(Constant::Computed, |value| constant(&source, value, 0));
            let value = match part("type") {
                Some(written) => typed(kind(&source, written), value, false),
                None => value,
            };
            package.constants.entry(source.text(name).to_owned()).or_insert(value);
        }
    }
}

fn typed(kind: Type, value: Constant, is_call: bool) -> Constant {
    Constant::Typed { kind: Box::new(kind), value: Box::new(value), is_call }
}

/// The constant that an expression stands for.
pub(super) fn constant(source: &Source<'_>, node: Node<'_>, depth: usize) -> Constant {
    read_expression(source, node, depth).unwrap_or(Constant::Computed)
}

fn read_expression(source: &Source<'_>, node: Node<'_>, depth: usize) -> Option<Constant> {
    let text = source.text(node);
    let part = |name| node.child_by_field_name(name);
    let inner = |node: Option<Node<'_>>| {
        node.filter(|_| depth < DEEPEST).and_then(|node| read_expression(source, node, depth + 1))
    };
    let operand = |name| inner(part(name)).map(Box::new);
    let operator = || part("operator").map(|operator| source.text(operator).to_owned());
    Some(match node.kind() {
        "interpreted_string_literal" | "raw_string_literal" => {
            Constant::Literal(Value::String(unquote(text)?))
        }
        "int_literal" => Constant::Literal(Value::Number(whole(text)?)),
        "float_literal" => {
            let number = text.replace('_', "").parse().ok().and_then(Number::from_f64);
            Constant::Literal(Value::Number(number?))
        }
        "rune_literal" => Constant::Literal(u32::from(rune(text)?).into()),
        "true" | "false" => Constant::Literal(Value::Bool(node.kind() == "true")),
        "iota" => Constant::Literal(source.iota.into()),
        "identifier" => Constant::Reference(source.own.to_owned(), text.to_owned()),
        "selector_expression" => {
            let (package, name) = selected(source, node)?;
            Constant::Reference(package.to_owned(), name.to_owned())
        }
        "parenthesized_expression" => return inner(node.named_child(0)),
        // `Protocol("TCP")`
        "call_expression" => {
            let function = part("function")?;
            let kind = match function.kind() {
                "identifier" => Type::named(source.own, source.text(function)),
                "selector_expression" => {
                    let (package, name) = selected(source, function)?;
                    Type::named(package, name)
                }
                _ => return None,
            };
            let arguments = part("arguments").filter(|arguments| arguments.named_child_count() == 1)?;
            typed(kind, inner(arguments.named_child(0))?, true)
        }
        "unary_expression" => Constant::Unary(operator()?, operand("operand")?),
        "binary_expression" => Constant::Binary(operator()?, operand("left")?, operand("right")?),
        _ => return None,
    })
}

/// The package and the name in `qualifier.Name`.
fn selected<'a>(source: &'a Source<'_>, node: Node<'_>) -> Option<(&'a str, &'a str)> {
    let part = |name| node.child_by_field_name(name).map(|part| source.text(part));
    Some((source.import(part("operand")?)?, part("field")?))
}

fn whole(text: &str) -> Option<Number> {
    let plain = text.replace('_', "").to_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let found = radix.iter().find_map(|(prefix, radix)| Some((plain.strip_prefix(prefix)?, *radix)));
    let number = match found {
        Some((digits, radix)) => u64::from_str_radix(digits, radix),
        None if plain.len() > 1 && plain.starts_with('0') => u64::from_str_radix(&plain, 8),
        None => plain.parse(),
    };
    number.ok().map(Number::from)
}

fn rune(literal: &str) -> Option<char> {
    let inside = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    let text = match inside {
        "\"" | "\\'" => inside[inside.len() - 1..].to_owned(),
        _ => unquote(&format!("\"{inside}\""))?,
    };
    let mut letters = text.chars();
    // Bytes are no letters.
    letters.next().filter(|letter| *letter != '\u{fffd}' && letters.next().is_none())
}
