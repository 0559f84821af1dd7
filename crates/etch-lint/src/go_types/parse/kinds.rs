//! Types as they are written.
//! `resolve` follows their names.

use tree_sitter::Node;

use super::comments::{About, Comments};
use super::source::Source;
use super::{constants, tag};
use crate::go_types::{Constant, Field, Spot, Type, TypeName};

/// How deep types may be nested in one declaration.
const DEEPEST: usize = 64;

/// The type that a node stands for.
pub(super) fn kind(source: &Source<'_>, node: Node<'_>, depth: usize, uses: &mut dyn FnMut(&str)) -> Type {
    if depth > DEEPEST {
        return Type::Other;
    }
    let mut inner = |node: Option<Node<'_>>| node.map(|node| Box::new(kind(source, node, depth + 1, uses)));
    let built = match node.kind() {
        "type_identifier" => {
            let name = source.text(node);
            Some(match source.parameters.iter().position(|parameter| parameter == name) {
                Some(index) => Type::Parameter(index),
                None => Type::named(source.own, name),
            })
        }
        "qualified_type" => {
            let part = |name| node.child_by_field_name(name).map(|part| source.text(part));
            let package = part("package").and_then(|qualifier| source.import(qualifier));
            package.zip(part("name")).map(|(package, name)| {
                uses(package);
                Type::named(package, name)
            })
        }
        "pointer_type" => inner(node.named_child(0)).map(Type::Pointer),
        "slice_type" => inner(node.child_by_field_name("element")).map(Type::List),
        "array_type" => {
            let length = node.child_by_field_name("length");
            let length = length.map_or(Constant::Computed, |length| constants::constant(source, length, 0));
            inner(node.child_by_field_name("element")).map(|of| Type::Array(of, length))
        }
        "generic_type" => inner(node.child_by_field_name("type")).map(|generic| match *generic {
            Type::Named(name) => {
                Type::Named(TypeName { arguments: arguments(source, node, depth + 1, uses), ..name })
            }
            other => other,
        }),
        "map_type" => inner(node.child_by_field_name("value")).map(Type::Map),
        "parenthesized_type" => inner(node.named_child(0)).map(|inner| *inner),
        "struct_type" => node.named_child(0).map(|list| Type::Struct(fields(source, list, depth + 1, uses))),
        _ => None,
    };
    built.unwrap_or(Type::Other)
}

/// What a generic type is used with.
fn arguments(source: &Source<'_>, node: Node<'_>, depth: usize, uses: &mut dyn FnMut(&str)) -> Vec<Type> {
    let Some(list) = node.child_by_field_name("type_arguments") else { return Vec::new() };
    let mut cursor = list.walk();
    let written = list.named_children(&mut cursor).map(|argument| match argument.kind() {
        "type_elem" => argument.named_child(0).unwrap_or(argument),
        _ => argument,
    });
    written.map(|argument| kind(source, argument, depth, uses)).collect()
}

fn fields(source: &Source<'_>, list: Node<'_>, depth: usize, uses: &mut dyn FnMut(&str)) -> Vec<Field> {
    let (mut fields, mut comments, mut left_over) = (Vec::<Field>::new(), Comments::default(), Vec::new());
    let mut cursor = list.walk();
    for child in list.children(&mut cursor) {
        match child.kind() {
            "comment" => {
                let behind = comments.comment(child, source.text(child), source.file);
                if let Some(last) = fields.last_mut() {
                    last.remarks.extend(behind);
                }
            }
            "field_declaration" => {
                let about = comments.take(child, &mut left_over);
                field(source, child, about, depth, uses, &mut fields);
            }
            _ => comments.other(child),
        }
    }
    fields
}

/// The fields of one line, which may have several names, or no name if it is embedded.
fn field(
    source: &Source<'_>,
    node: Node<'_>,
    About { markers, remarks }: About,
    depth: usize,
    uses: &mut dyn FnMut(&str),
    fields: &mut Vec<Field>,
) {
    let Some(written) = node.child_by_field_name("type") else { return };
    let tag = node.child_by_field_name("tag").and_then(|tag| tag::json(source.text(tag)));
    let spot = |node: Node<'_>| Spot { file: source.file.clone(), line: node.start_position().row + 1 };
    let mut cursor = node.walk();
    let names = node.children_by_field_name("name", &mut cursor);
    let names: Vec<_> = names.filter(|name| name.kind() == "field_identifier").collect();
    for name in &names {
        fields.push(Field {
            name: source.text(*name).to_owned(),
            at: spot(*name),
            is_embedded: false,
            tag: tag.clone(),
            markers: markers.clone(),
            remarks: remarks.clone(),
            kind: kind(source, written, depth, uses),
        });
    }
    if names.is_empty() {
        let base = match written.kind() {
            "generic_type" => written.child_by_field_name("type").unwrap_or(written),
            _ => written,
        };
        let name = source.text(base.child_by_field_name("name").unwrap_or(base)).to_owned();
        let plain = kind(source, written, depth, uses);
        let is_pointer = node.child(0).is_some_and(|first| first.kind() == "*");
        let kind = if is_pointer { Type::Pointer(Box::new(plain)) } else { plain };
        fields.push(Field { name, at: spot(written), is_embedded: true, tag, markers, remarks, kind });
    }
}
