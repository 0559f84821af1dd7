//! What a type resolves to, through names, aliases and packages. A type that is declared elsewhere is
//! unknown, but for those that every API uses.

use super::package::{Declaration, Field, Marker, Package, Packages, Type};
use super::shape::{Shape, Struct};
use super::well_known::{Zero, well_known};

/// How many names may lead from one to the next.
const LONGEST_CHAIN: usize = 32;
/// How deep structs may be embedded in structs.
const DEEPEST_EMBEDDING: usize = 16;
/// How deep methods may be inherited from embedded structs.
const DEEPEST_INHERITANCE: usize = 4;

/// A type with all names followed.
#[derive(Debug)]
pub struct Resolved<'a> {
    /// What it resolves to.
    pub shape: Shape<'a>,
    /// Whether a pointer is on the way.
    pub is_pointer: bool,
    /// Whether the list has a fixed length, so that it is never empty.
    pub is_array: bool,
    /// What its zero value is written as, where it writes its JSON itself.
    pub(super) zero: Option<Zero>,
    /// The declarations on the way, the nearest one first, each with its package.
    pub declared: Vec<(&'a Package, &'a Declaration)>,
}

impl Packages {
    /// Follows the names of a type that is used in a package.
    pub fn resolve<'a>(&'a self, package: &'a Package, kind: &'a Type) -> Resolved<'a> {
        self.resolve_within(package, kind, DEEPEST_INHERITANCE)
    }

    /// Follows the type of a field, unless its markers set its schema.
    pub fn resolve_field<'a>(&'a self, package: &'a Package, field: &'a Field) -> Resolved<'a> {
        let mut resolved = self.resolve(package, &field.kind);
        let is_marked = |name: &str| field.has_marker(&format!("kubebuilder:validation:{name}"));
        if field.markers.iter().any(Marker::replaces_object) || is_marked("Schemaless") {
            resolved.shape = Shape::Custom;
            resolved.zero = Some(resolved.zero.unwrap_or(Zero::Unknown));
        } else if is_marked("XIntOrString") {
            resolved.shape = Shape::IntegerOrText;
        }
        resolved
    }

    fn resolve_within<'a>(&'a self, package: &'a Package, kind: &'a Type, depth: usize) -> Resolved<'a> {
        let (mut package, mut kind) = (package, kind);
        let mut resolved = Resolved {
            shape: Shape::Unknown,
            is_pointer: false,
            is_array: false,
            zero: None,
            declared: Vec::new(),
        };
        // A type that is defined as another one has none of its methods.
        let mut has_methods = true;
        for _ in 0..LONGEST_CHAIN {
            match kind {
                Type::Pointer(to) => {
                    resolved.is_pointer = true;
                    kind = to;
                    continue;
                }
                Type::List(of) if is_byte(of) => resolved.shape = Shape::Bytes,
                Type::List(of) => resolved.shape = Shape::List(of),
                Type::Array(of) => {
                    resolved.shape = Shape::List(of);
                    resolved.is_array = true;
                }
                Type::Map(of) => resolved.shape = Shape::Map(of),
                Type::Struct(fields) => match self.inherited(package, fields, depth) {
                    Some((shape, zero)) => (resolved.shape, resolved.zero) = (shape, zero),
                    None => resolved.shape = Shape::Struct(Struct { fields, package }),
                },
                Type::Other => {}
                Type::Named(name) => {
                    let declared =
                        self.get(&name.package).and_then(|there| Some((there, there.types.get(&name.name)?)));
                    if let Some((there, declaration)) = declared {
                        resolved.declared.push((there, declaration));
                        let is_custom = has_methods && there.custom.contains(&name.name);
                        if !is_custom && !declaration.markers.iter().any(Marker::replaces_object) {
                            has_methods = declaration.is_alias;
                            (package, kind) = (there, &declaration.kind);
                            continue;
                        }
                        resolved.shape = Shape::Custom;
                        let is_struct = matches!(declaration.kind, Type::Struct(_));
                        let is_written = is_struct && there.written.contains(&name.name);
                        let zero = if is_written { Zero::Written } else { Zero::Unknown };
                        resolved.zero = is_custom.then_some(zero);
                    } else if name.package == package.path {
                        resolved.shape = predeclared(&name.name);
                    } else if let Some(known) = well_known(&name.package, &name.name)
                        && (has_methods || known.zero.is_none())
                    {
                        (resolved.shape, resolved.zero) = (known.shape, known.zero);
                    }
                }
            }
            return resolved;
        }
        resolved
    }

    /// How a struct writes its JSON by the methods of the one struct that is embedded in it and has them;
    /// whatever other fields it has, JSON lacks them.
    fn inherited<'a>(
        &'a self,
        package: &'a Package,
        fields: &'a [Field],
        depth: usize,
    ) -> Option<(Shape<'a>, Option<Zero>)> {
        let depth = depth.checked_sub(1)?;
        let mut found = None;
        for field in fields.iter().filter(|field| field.is_embedded) {
            let embedded = self.resolve_within(package, &field.kind, depth);
            if let Some(zero) = embedded.zero {
                // Go takes neither of two methods.
                if found.is_some() {
                    return None;
                }
                found = Some((embedded.shape, Some(if embedded.is_pointer { Zero::Unknown } else { zero })));
            }
        }
        found
    }
}

impl<'a> Struct<'a> {
    /// Visits the fields that JSON has, those of embedded structs as well, each with the package in which it
    /// is declared. False where an embedded struct is not known, so that there may be more.
    pub fn each(&self, packages: &'a Packages, visit: &mut dyn FnMut(&'a Package, &'a Field)) -> bool {
        self.each_below(packages, DEEPEST_EMBEDDING, visit)
    }

    fn each_below(
        &self,
        packages: &'a Packages,
        depth: usize,
        visit: &mut dyn FnMut(&'a Package, &'a Field),
    ) -> bool {
        let mut is_complete = true;
        for field in self.fields {
            if !field.is_inline() {
                visit(self.package, field);
                continue;
            }
            is_complete &= match packages.resolve(self.package, &field.kind).shape {
                Shape::Struct(inner) if depth > 0 => inner.each_below(packages, depth - 1, visit),
                _ => false,
            };
        }
        is_complete
    }

    /// The field with a name in JSON, if it is known, and whether all fields are.
    pub fn field(&self, packages: &'a Packages, name: &str) -> (Option<(&'a Package, &'a Field)>, bool) {
        let mut found = None;
        let is_complete = self.each(packages, &mut |package, field| {
            if field.json_name() == Some(name) && found.is_none() {
                found = Some((package, field));
            }
        });
        (found, is_complete)
    }
}

fn is_byte(kind: &Type) -> bool {
    matches!(kind, Type::Named(name) if matches!(name.name.as_str(), "byte" | "uint8"))
}

fn predeclared<'a>(name: &str) -> Shape<'a> {
    match name {
        "string" => Shape::Text,
        "bool" => Shape::Bool,
        "float32" | "float64" => Shape::Float,
        "int" | "int8" | "int16" | "int32" | "int64" | "uint" | "uint8" | "uint16" | "uint32" | "uint64"
        | "byte" | "rune" | "uintptr" => Shape::Integer,
        _ => Shape::Unknown,
    }
}
