//! What a type resolves to, through names, aliases and packages. A type that is declared elsewhere is
//! unknown, but for those that every API uses.

use super::format::Format;
use super::package::{Constant, Declaration, Field, Marker, Package, Packages, Type, TypeName, Writer};
use super::scope::Scope;
use super::shape::{Shape, Struct, Whole};
use super::well_known::{WellKnown, Zero, is_plain, well_known};

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
    /// The length of the list, where it is fixed.
    pub length: Option<&'a Constant>,
    /// The form of its strings.
    pub format: Option<Format>,
    /// How it writes its JSON, if it does that itself.
    pub(super) own: Option<Own<'a>>,
    /// What a type is written as that only reads its JSON itself.
    pub(super) written: Shape<'a>,
    /// Whether a struct that embeds it may inherit how it reads or writes its JSON.
    is_inherited: bool,
    /// Whether a struct may inherit methods for JSON from what is embedded in it, so that it is an object
    /// only perhaps.
    is_unsure: bool,
    /// Whether it is a struct of Kubernetes that was not read.
    is_unread_object: bool,
    /// Where the types in the shape are written.
    pub scope: Scope<'a>,
    /// The declarations on the way, the nearest one first, each with its package.
    pub declared: Vec<(&'a Package, &'a Declaration)>,
}

/// How a type writes its JSON itself.
#[derive(Clone, Debug)]
pub(super) struct Own<'a> {
    /// Its zero value.
    pub(super) zero: Zero,
    /// Whether `omitempty` omits that.
    pub(super) is_omitted: bool,
    /// The method, with the package in which it is.
    pub(super) writer: Option<(&'a Package, &'a Writer)>,
}

/// What counts where names are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Values as they are read and written.
    Json,
    /// What Go makes of them, whatever methods and markers there are.
    Go,
}

impl Packages {
    /// Follows the names of a type that is used in a scope.
    pub fn resolve<'a>(&'a self, scope: impl Into<Scope<'a>>, kind: &'a Type) -> Resolved<'a> {
        self.resolve_within(scope.into(), kind, View::Json, DEEPEST_INHERITANCE)
    }

    /// Follows the type of a field, unless its markers set its schema.
    pub fn resolve_field<'a>(&'a self, scope: impl Into<Scope<'a>>, field: &'a Field) -> Resolved<'a> {
        let mut resolved = self.resolve(scope, &field.kind);
        let is_marked = |name: &str| field.has_marker(&format!("kubebuilder:validation:{name}"));
        if field.markers.iter().any(Marker::replaces_object) || is_marked("Schemaless") {
            resolved.shape = Shape::Custom;
            let unknown = Own { zero: Zero::Unknown, is_omitted: false, writer: None };
            resolved.own.get_or_insert(unknown);
        } else if is_marked("XIntOrString") {
            (resolved.shape, resolved.format) = (Shape::IntegerOrText, None);
        }
        resolved
    }

    /// What a type is to Go, whatever it does with JSON.
    pub(super) fn underlying<'a>(&'a self, package: &'a Package, kind: &'a Type) -> Shape<'a> {
        self.resolve_within(package.into(), kind, View::Go, 0).shape
    }

    fn resolve_within<'a>(
        &'a self,
        scope: Scope<'a>,
        kind: &'a Type,
        view: View,
        depth: usize,
    ) -> Resolved<'a> {
        let mut kind = kind;
        let mut resolved = Resolved {
            shape: Shape::Unknown,
            is_pointer: false,
            length: None,
            format: None,
            own: None,
            written: Shape::Unknown,
            is_inherited: false,
            is_unsure: false,
            is_unread_object: false,
            scope,
            declared: Vec::new(),
        };
        // A type that is defined as another one has none of its methods.
        let mut has_methods = view == View::Json;
        for _ in 0..LONGEST_CHAIN {
            match kind {
                Type::Pointer(to) => {
                    resolved.is_pointer = true;
                    kind = to;
                    continue;
                }
                Type::Parameter(index) => {
                    if let Some((scope, argument)) = resolved.scope.argument(*index) {
                        (resolved.scope, kind) = (scope, argument);
                        continue;
                    }
                }
                Type::List(of) if self.is_byte(&resolved.scope, of) => {
                    (resolved.shape, resolved.format) = (Shape::Bytes, Some(Format::Bytes));
                }
                Type::List(of) => resolved.shape = Shape::List(of),
                Type::Array(of, length) => {
                    (resolved.shape, resolved.length) = (Shape::List(of), Some(length));
                }
                Type::Map(of) => resolved.shape = Shape::Map(of),
                Type::Struct(fields) => {
                    resolved.shape = Shape::Struct(Struct { fields, scope: resolved.scope.clone() });
                    if view == View::Json {
                        self.inherit(fields, depth, &mut resolved);
                    }
                }
                Type::Other => {}
                Type::Named(name) => {
                    if let Some((there, declaration)) = self.declared(name) {
                        resolved.declared.push((there, declaration));
                        let methods = there.custom.get(&declaration.name).filter(|_| has_methods);
                        let is_replaced = declaration.markers.iter().any(Marker::replaces_object);
                        let scope = resolved.scope.within(there, name);
                        if view == View::Go || methods.is_none() && !is_replaced {
                            has_methods &= declaration.is_alias;
                            (resolved.scope, kind) = (scope, &declaration.kind);
                            continue;
                        }
                        resolved.shape = Shape::Custom;
                        if let Some(methods) = methods {
                            resolved.is_inherited = true;
                            let plain = self.resolve_within(scope, &declaration.kind, View::Go, 0);
                            let is_known = !matches!(plain.shape, Shape::Unknown) && !plain.is_pointer;
                            let is_struct = matches!(plain.shape, Shape::Struct(_));
                            let writer =
                                methods.writer.as_ref().filter(|writer| is_struct || writer.is_plain);
                            (resolved.length, resolved.scope) = (plain.length, plain.scope);
                            resolved.own = methods.is_writer.then(|| Own {
                                zero: writer.filter(|_| is_known).map_or(Zero::Unknown, |_| Zero::Written),
                                is_omitted: !is_struct && plain.length.is_none(),
                                writer: writer.map(|writer| (there, writer)),
                            });
                            resolved.written = plain.shape;
                        }
                    } else if let Some(shape) = predeclared(&name.name) {
                        resolved.shape = shape;
                    } else if let Some(known) = self.well_known(name)
                        && (has_methods || known.zero.is_none())
                    {
                        (resolved.shape, resolved.format) = (known.shape, known.format);
                        resolved.is_inherited = known.is_inherited;
                        resolved.is_unread_object = known.is_object;
                        let is_omitted = known.is_omitted;
                        resolved.own = known.zero.map(|zero| Own { zero, is_omitted, writer: None });
                    }
                }
            }
            return resolved;
        }
        resolved
    }

    /// The declaration that a name stands for.
    fn declared(&self, name: &TypeName) -> Option<(&Package, &Declaration)> {
        self.paths(name).find_map(|path| {
            let there = self.get(path)?;
            Some((there, there.types.get(&name.name)?))
        })
    }

    fn well_known(&self, name: &TypeName) -> Option<WellKnown> {
        self.paths(name).find_map(|path| well_known(path, &name.name))
    }

    /// The packages that may declare a name.
    fn paths<'a>(&'a self, name: &'a TypeName) -> impl Iterator<Item = &'a str> {
        let dots = self.get(&name.package).into_iter().flat_map(|package| &package.dots);
        std::iter::once(name.package.as_str()).chain(dots.map(String::as_str))
    }

    /// How a struct reads and writes its JSON by the methods of the one type that is embedded in it and has
    /// them; whatever other fields it has, JSON lacks them.
    fn inherit<'a>(&'a self, fields: &'a [Field], depth: usize, into: &mut Resolved<'a>) {
        let mut found = None;
        for field in fields.iter().filter(|field| field.is_embedded) {
            let Some(depth) = depth.checked_sub(1) else {
                into.is_unsure = true;
                return;
            };
            let embedded = self.resolve_within(into.scope.clone(), &field.kind, View::Json, depth);
            if embedded.is_inherited {
                // Which of two methods Go takes, or neither, depends on their depths.
                into.is_unsure |= found.is_some();
                found = Some(embedded);
            } else {
                let is_unknown = matches!(embedded.shape, Shape::Unknown) && !self.is_plain(&field.kind);
                into.is_unsure |= embedded.is_unsure || is_unknown;
            }
        }
        let Some(embedded) = found.filter(|_| !into.is_unsure) else { return };
        let own = embedded.own.filter(|_| !embedded.is_pointer);
        let unknown = Own { zero: Zero::Unknown, is_omitted: false, writer: None };
        into.own = Some(own.map_or(unknown, |own| Own { is_omitted: false, ..own }));
        (into.shape, into.format, into.is_inherited) = (embedded.shape, embedded.format, true);
    }

    /// Whether a type that is not known has no methods for JSON in any case.
    fn is_plain(&self, kind: &Type) -> bool {
        match kind {
            Type::Pointer(to) => self.is_plain(to),
            Type::Named(name) => {
                let is_by_dot = || self.get(&name.package).is_some_and(|package| !package.dots.is_empty());
                is_plain(&name.package, &name.name) && !is_by_dot()
            }
            _ => false,
        }
    }

    /// Whether a list of values of a type is written as base64.
    fn is_byte<'a>(&'a self, scope: &Scope<'a>, of: &'a Type) -> bool {
        let (mut scope, mut kind, mut has_methods) = (scope.clone(), of, true);
        for _ in 0..LONGEST_CHAIN {
            match kind {
                Type::Parameter(index) => match scope.argument(*index) {
                    Some(argument) => (scope, kind) = argument,
                    None => return false,
                },
                Type::Named(name) => match self.declared(name) {
                    Some((there, declaration)) => {
                        let methods = there.custom.get(&declaration.name).filter(|_| has_methods);
                        if methods.is_some_and(|methods| methods.is_writer) {
                            return false;
                        }
                        has_methods &= declaration.is_alias;
                        (scope, kind) = (scope.within(there, name), &declaration.kind);
                    }
                    None => return Whole::of(&name.name) == Some(Whole::BYTES),
                },
                _ => return false,
            }
        }
        false
    }
}

impl Resolved<'_> {
    /// Whether it writes its JSON itself.
    pub fn writes_itself(&self) -> bool {
        self.own.is_some()
    }

    /// Whether a method writes it for sure, and not the encoder field by field.
    pub fn is_written_by_method(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.zero != Zero::Unknown)
    }
}

impl<'a> Resolved<'a> {
    /// Whether it is a struct and an object in JSON for sure, even if its fields are not known.
    pub fn is_object(&self) -> bool {
        self.object().is_some() || self.is_unread_object && matches!(self.shape, Shape::Unknown)
    }

    /// The struct, where it is an object in JSON for sure.
    pub fn object(&self) -> Option<&Struct<'a>> {
        match &self.shape {
            Shape::Struct(of) if !self.is_unsure => Some(of),
            _ => None,
        }
    }
}

impl<'a> Struct<'a> {
    /// Visits the fields that JSON has, those of embedded structs as well, each with the scope in which it is
    /// written. False where an embedded struct is not known, so that there may be more.
    pub fn each(&self, packages: &'a Packages, visit: &mut dyn FnMut(&Scope<'a>, &'a Field)) -> bool {
        self.each_below(packages, DEEPEST_EMBEDDING, visit)
    }

    fn each_below(
        &self,
        packages: &'a Packages,
        depth: usize,
        visit: &mut dyn FnMut(&Scope<'a>, &'a Field),
    ) -> bool {
        let mut is_complete = true;
        for field in self.fields {
            if !field.is_inline() {
                visit(&self.scope, field);
                continue;
            }
            is_complete &= match packages.resolve(self.scope.clone(), &field.kind).shape {
                Shape::Struct(inner) if depth > 0 => inner.each_below(packages, depth - 1, visit),
                _ => false,
            };
        }
        is_complete
    }

    /// The field with a name in JSON, if it is known, and whether all fields are.
    pub fn field(&self, packages: &'a Packages, name: &str) -> (Option<(Scope<'a>, &'a Field)>, bool) {
        let mut found = None;
        let is_complete = self.each(packages, &mut |scope, field| {
            if field.json_name() == Some(name) && found.is_none() {
                found = Some((scope.clone(), field));
            }
        });
        (found, is_complete)
    }
}

fn predeclared<'a>(name: &str) -> Option<Shape<'a>> {
    match name {
        "string" => Some(Shape::Text),
        "bool" => Some(Shape::Bool),
        "float32" | "float64" => Some(Shape::Float),
        _ => Whole::of(name).map(Shape::Integer),
    }
}
