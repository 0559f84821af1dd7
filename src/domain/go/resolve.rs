//! What a type comes to, through names, aliases and packages.
//! It must not guess: a type that is declared elsewhere is unknown.

use super::package::{Declaration, Field, Package, Packages, Type};

/// How many names may lead from one to the next.
const LONGEST_CHAIN: usize = 32;
/// How deep structs may be embedded in structs.
const DEEPEST_EMBEDDING: usize = 16;

/// What values of a type look like in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// A string; bytes too.
    Text,
    /// A boolean.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// A list of values of this type.
    List(&'a Type),
    /// A map with values of this type.
    Map(&'a Type),
    /// An object.
    Struct(Struct<'a>),
    /// Whatever it writes itself.
    Custom,
    /// It is declared in a package that was not read, or is anything.
    Unknown,
}

/// The fields of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Struct<'a> {
    /// As they are declared, with embedded ones.
    pub fields: &'a [Field],
    /// Where it is declared.
    pub package: &'a Package,
}

/// A type with all names followed.
#[derive(Debug)]
pub struct Resolved<'a> {
    /// What it comes to.
    pub shape: Shape<'a>,
    /// Whether a pointer is on the way.
    pub is_pointer: bool,
    /// The declarations on the way, the nearest one first, each with its package.
    pub declared: Vec<(&'a Package, &'a Declaration)>,
}

impl Packages {
    /// Follows the names of a type that is used in a package.
    pub fn resolve<'a>(&'a self, package: &'a Package, kind: &'a Type) -> Resolved<'a> {
        let (mut package, mut kind) = (package, kind);
        let mut resolved = Resolved { shape: Shape::Unknown, is_pointer: false, declared: Vec::new() };
        for _ in 0..LONGEST_CHAIN {
            match kind {
                Type::Pointer(to) => {
                    resolved.is_pointer = true;
                    kind = to;
                }
                Type::List(of) if is_byte(of) => {
                    resolved.shape = Shape::Text;
                    return resolved;
                }
                Type::List(of) => {
                    resolved.shape = Shape::List(of);
                    return resolved;
                }
                Type::Map(of) => {
                    resolved.shape = Shape::Map(of);
                    return resolved;
                }
                Type::Struct(fields) => {
                    resolved.shape = Shape::Struct(Struct { fields, package });
                    return resolved;
                }
                Type::Other => return resolved,
                Type::Named(name) => {
                    let declared =
                        self.get(&name.package).and_then(|there| Some((there, there.types.get(&name.name)?)));
                    let Some((there, declaration)) = declared else {
                        if name.package == package.path {
                            resolved.shape = predeclared(&name.name);
                        }
                        return resolved;
                    };
                    resolved.declared.push((there, declaration));
                    let is_typed = |marker: &super::Marker| marker.name == "kubebuilder:validation:Type";
                    if there.custom.contains(&name.name) || declaration.markers.iter().any(is_typed) {
                        resolved.shape = Shape::Custom;
                        return resolved;
                    }
                    (package, kind) = (there, &declaration.kind);
                }
            }
        }
        resolved
    }
}

impl<'a> Struct<'a> {
    /// Visits the fields that JSON has, those of embedded structs as well, each with the package in which it is
    /// declared. False where
    /// an embedded struct is not known, so that there may be more.
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
