//! Types of expressions: what names mean, which overloads a call may resolve to, and what can never work.
//!
//! Source: cel-go `checker/checker.go`.

use super::library::{self, Library, Overload};
use super::problem::{Position, Problem};
use super::tree::{Entry, Expr, Fold, Id, Tree};
use super::types::{Bindings, Type};
use super::value::Value;

/// What checking has found out, by [`Id::index`]. What is not reached has no type.
#[derive(Debug)]
pub(super) struct Checked<'m> {
    pub(super) types: Vec<Option<Type<'m>>>,
    pub(super) references: Vec<Reference>,
}

/// What a name or call refers to.
#[derive(Clone, Debug, Default)]
pub(super) enum Reference {
    /// Nothing: a literal, a field, …
    #[default]
    None,
    /// A variable of the outermost scope.
    Global(Global),
    /// A variable of a loop.
    Local,
    /// A type, by its name.
    Type(&'static str),
    /// A function by its full name; the first overload that takes the values at run time is called, on the
    /// target where that is kept.
    Call { name: Box<str>, candidates: Vec<&'static Overload>, keeps_target: bool },
}

/// The variables that a rule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// `self`
    Current,
    /// `oldSelf`
    Old,
    /// One that is declared for an expression outside a schema, by its place among [`Globals::named`].
    Named(usize),
}

/// The types of those variables.
#[derive(Debug)]
pub(super) struct Globals<'m> {
    pub(super) current: Type<'m>,
    pub(super) old: Type<'m>,
    /// Those that are declared for an expression outside a schema. They come before the others.
    pub(super) named: Vec<(Box<str>, Type<'m>)>,
}

/// Checks an expression.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn check<'m>(
    source: &str,
    tree: &Tree,
    globals: &Globals<'m>,
    library: Library,
) -> Result<Checked<'m>, Vec<Problem>> {
    let mut checker = Checker {
        source,
        tree,
        globals,
        library,
        types: vec![None; tree.len()],
        references: vec![Reference::None; tree.len()],
        bindings: Bindings::default(),
        variables: 0,
        scope: Vec::new(),
        errors: Vec::new(),
    };
    checker.check(tree.root);
    if !checker.errors.is_empty() {
        return Err(checker.errors);
    }
    let bindings = &checker.bindings;
    let types = checker.types.iter().map(|ty| ty.as_ref().map(|ty| bindings.resolve(ty, true))).collect();
    Ok(Checked { types, references: checker.references })
}

/// Whether cel-go knows a type of messages by this name.
///
/// Source: cel-go `common/types/pb/pb.go`, `DefaultDb`.
fn is_message(name: &str) -> bool {
    const MESSAGES: [&str; 16] = [
        "Any",
        "BoolValue",
        "BytesValue",
        "DoubleValue",
        "Duration",
        "Empty",
        "FloatValue",
        "Int32Value",
        "Int64Value",
        "ListValue",
        "StringValue",
        "Struct",
        "Timestamp",
        "UInt32Value",
        "UInt64Value",
        "Value",
    ];
    let name = name.strip_prefix('.').unwrap_or(name);
    name.strip_prefix("google.protobuf.").is_some_and(|name| MESSAGES.contains(&name))
}

struct Checker<'t, 'm> {
    source: &'t str,
    tree: &'t Tree,
    globals: &'t Globals<'m>,
    library: Library,
    types: Vec<Option<Type<'m>>>,
    references: Vec<Reference>,
    bindings: Bindings<'m>,
    variables: u32,
    scope: Vec<(Box<str>, Type<'m>)>,
    errors: Vec<Problem>,
}

impl<'m> Checker<'_, 'm> {
    /// Finds the type of an expression. After an error it is `dyn`, so that one mistake is reported once.
    fn check(&mut self, id: Id) -> Type<'m> {
        let tree = self.tree;
        let ty = match tree.get(id) {
            Expr::Literal(value) => literal_type(value),
            Expr::Ident(name) => self.check_ident(id, name),
            Expr::Select { operand, field, test } => self.check_select(id, *operand, field, *test),
            Expr::Call { function, target, args } => self.check_call(id, function, *target, args),
            Expr::List(items) => self.check_list(items),
            Expr::Map(entries) => self.check_map(entries),
            // What is in it is not checked.
            Expr::Message(name) if is_message(name) => Type::Dyn,
            Expr::Message(name) => self.undeclared(id, name),
            Expr::Fold(fold) => self.check_fold(fold),
        };
        self.types[id.index()] = Some(ty.clone());
        ty
    }

    fn fail(&mut self, id: Id, text: impl Into<String>) -> Type<'m> {
        self.errors.push(Problem { at: Position::of(self.source, self.tree.place(id)), text: text.into() });
        Type::Dyn
    }

    fn undeclared(&mut self, id: Id, name: &str) -> Type<'m> {
        self.fail(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn variable(&mut self) -> Type<'m> {
        self.variables += 1;
        Type::Var(self.variables)
    }

    fn local(&self, name: &str) -> Option<&Type<'m>> {
        self.scope.iter().rev().find(|(known, _)| **known == *name).map(|(_, ty)| ty)
    }

    fn check_ident(&mut self, id: Id, name: &str) -> Type<'m> {
        if let Some(ty) = self.local(name) {
            let ty = ty.clone();
            self.references[id.index()] = Reference::Local;
            return ty;
        }
        match self.check_global(id, name.strip_prefix('.').unwrap_or(name)) {
            Some(ty) => ty,
            None => self.undeclared(id, name),
        }
    }

    /// A variable of the outermost scope, or a type.
    fn check_global(&mut self, id: Id, name: &str) -> Option<Type<'m>> {
        if let Some(place) = self.globals.named.iter().position(|(known, _)| **known == *name) {
            self.references[id.index()] = Reference::Global(Global::Named(place));
            return Some(self.globals.named[place].1.clone());
        }
        let (reference, ty) = match name {
            "self" => (Reference::Global(Global::Current), self.globals.current.clone()),
            "oldSelf" => (Reference::Global(Global::Old), self.globals.old.clone()),
            name => {
                let (name, ty) = library::type_named(name)?;
                (Reference::Type(name), Type::Meta(ty.into()))
            }
        };
        self.references[id.index()] = reference;
        Some(ty)
    }

    fn check_select(&mut self, id: Id, operand: Id, field: &str, test: bool) -> Type<'m> {
        if !test && let Some(ty) = self.check_qualified(id) {
            return ty;
        }
        let ty = self.check_field(id, operand, field, false);
        if test { Type::Bool } else { self.bindings.resolve(&ty, false) }
    }

    /// A name with dots in it, such as `google.protobuf.Timestamp`.
    fn check_qualified(&mut self, id: Id) -> Option<Type<'m>> {
        let name = self.qualified_name(id)?;
        let first = name.split('.').find(|part| !part.is_empty()).unwrap_or_default();
        if !name.starts_with('.') && self.local(first).is_some() {
            return None;
        }
        self.check_global(id, name.strip_prefix('.').unwrap_or(&name))
    }

    fn qualified_name(&self, id: Id) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = id;
        loop {
            match self.tree.get(at) {
                Expr::Select { operand, field, test: false } => {
                    parts.push(&**field);
                    at = *operand;
                }
                Expr::Ident(name) => {
                    parts.push(name);
                    parts.reverse();
                    return Some(parts.join("."));
                }
                _ => return None,
            }
        }
    }

    fn check_field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type<'m> {
        let ty = self.check(operand);
        let (ty, was_optional) = self.bindings.resolve(&ty, false).unwrap_optional();
        let result = match &ty.open() {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(node) => match node.field(field) {
                Some(field) => Type::of_node(field),
                None => self.fail(id, format!("undefined field '{field}'")),
            },
            Type::Named(_) => self.fail(id, format!("undefined field '{field}'")),
            Type::Var(_) => {
                self.bindings.assign(&Type::Dyn, &ty);
                Type::Dyn
            }
            Type::Dyn => Type::Dyn,
            other => self.fail(id, format!("type '{other}' does not support field selection")),
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn check_call(&mut self, id: Id, function: &str, target: Option<Id>, args: &[Id]) -> Type<'m> {
        if function == "_?._" {
            return self.check_optional_select(id, args);
        }
        args.iter().for_each(|arg| {
            self.check(*arg);
        });
        let Some(target) = target else {
            let function = function.strip_prefix('.').unwrap_or(function);
            return match self.library.overloads(function) {
                Some(overloads) => self.resolve(id, function, overloads, None, args),
                None => self.undeclared(id, function),
            };
        };
        // `a.b(c)` may be the function `a.b`.
        if let Some(prefix) = self.qualified_name(target) {
            let name = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some(overloads) = self.library.overloads(&name) {
                return self.resolve(id, &name, overloads, None, args);
            }
        }
        self.check(target);
        match self.library.overloads(function) {
            Some(overloads) => self.resolve(id, function, overloads, Some(target), args),
            None => self.undeclared(id, function),
        }
    }

    fn check_optional_select(&mut self, id: Id, args: &[Id]) -> Type<'m> {
        let [operand, field] = args else {
            return self.fail(id, "unsupported optional field selection");
        };
        let Expr::Literal(Value::String(name)) = self.tree.get(*field) else {
            return self.fail(*field, "unsupported optional field selection");
        };
        self.types[field.index()] = Some(Type::String);
        let ty = self.check_field(id, *operand, name.as_str(), true);
        self.bindings.resolve(&ty, false)
    }

    fn resolve(
        &mut self,
        id: Id,
        function: &str,
        overloads: &'static [Overload],
        target: Option<Id>,
        args: &[Id],
    ) -> Type<'m> {
        let given: Vec<Type<'m>> = target.iter().chain(args).map(|arg| self.type_of(*arg)).collect();
        if matches!(function, "_&&_" | "_||_") {
            return self.check_logic(id, function, args, &given);
        }
        let mut result: Option<Type<'m>> = None;
        let mut candidates = Vec::new();
        for overload in overloads {
            if overload.member != target.is_some() {
                continue;
            }
            let (wanted, returned) = self.instantiate(overload);
            if !self.bindings.assign_all(&given, &wanted) {
                continue;
            }
            candidates.push(overload);
            let returned = self.bindings.resolve(&returned, false);
            result = Some(match result {
                None => returned,
                Some(first) if matches!(first, Type::Dyn) || returned.is(&first) => first,
                Some(_) => Type::Dyn,
            });
        }
        let keeps_target = target.is_some();
        self.references[id.index()] = Reference::Call { name: function.into(), candidates, keeps_target };
        result.unwrap_or_else(|| {
            let given: Vec<String> =
                given.iter().map(|ty| self.bindings.resolve(ty, true).to_string()).collect();
            let (on, given) = match (target, given.split_first()) {
                (Some(_), Some((on, given))) => (format!("{on}."), given),
                _ => (String::new(), &given[..]),
            };
            let given = given.join(", ");
            self.fail(id, format!("found no matching overload for '{function}' applied to '{on}({given})'"))
        })
    }

    fn check_logic(&mut self, id: Id, function: &str, args: &[Id], given: &[Type<'m>]) -> Type<'m> {
        for (arg, ty) in args.iter().zip(given) {
            if !self.bindings.assign(ty, &Type::Bool) {
                let ty = self.bindings.resolve(ty, true);
                self.fail(*arg, format!("expected type 'bool' but found '{ty}'"));
            }
        }
        self.references[id.index()] =
            Reference::Call { name: function.into(), candidates: Vec::new(), keeps_target: false };
        Type::Bool
    }

    /// The types of an overload with a fresh variable for each of its letters.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type<'m>>, Type<'m>) {
        let mut letters: Vec<(u8, Type<'m>)> = Vec::new();
        let mut fresh = |letter: u8| {
            if let Some((_, ty)) = letters.iter().find(|(known, _)| *known == letter) {
                return ty.clone();
            }
            let ty = self.variable();
            letters.push((letter, ty.clone()));
            ty
        };
        let wanted = overload.args.iter().map(|ty| Type::instantiate(ty, &mut fresh)).collect();
        let returned = Type::instantiate(&overload.result, &mut fresh);
        (wanted, returned)
    }

    fn type_of(&self, id: Id) -> Type<'m> {
        self.types[id.index()].clone().unwrap_or(Type::Dyn)
    }

    fn check_list(&mut self, items: &[(Id, bool)]) -> Type<'m> {
        let mut joined = None;
        for (item, optional) in items {
            let ty = self.check(*item);
            let ty = if *optional { self.unwrap(*item, ty) } else { ty };
            joined = Some(self.join(joined, ty));
        }
        let item = joined.unwrap_or_else(|| self.variable());
        Type::list(item)
    }

    fn check_map(&mut self, entries: &[Entry]) -> Type<'m> {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(entry.key);
            keys = Some(self.join(keys, key));
            let value = self.check(entry.value);
            let value = if entry.optional { self.unwrap(entry.value, value) } else { value };
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.variable());
        let value = values.unwrap_or_else(|| self.variable());
        Type::map(key, value)
    }

    /// The type within an optional, which an entry behind a `?` has to be.
    fn unwrap(&mut self, id: Id, ty: Type<'m>) -> Type<'m> {
        let (inner, was_optional) = ty.unwrap_optional();
        if !was_optional && !matches!(inner, Type::Dyn) {
            self.fail(id, format!("expected type 'optional_type({inner})' but found '{inner}'"));
        }
        inner
    }

    /// The type of a literal's entries so far with one more. Literals whose entries differ are reported
    /// later.
    fn join(&mut self, previous: Option<Type<'m>>, current: Type<'m>) -> Type<'m> {
        match previous {
            None => current,
            Some(previous) if self.bindings.assign(&previous, &current) => {
                Type::most_general(&previous, &current)
            }
            Some(_) => Type::Dyn,
        }
    }

    fn check_fold(&mut self, fold: &Fold) -> Type<'m> {
        let range = self.check(fold.range);
        let accu = self.check(fold.init);
        let range = self.bindings.resolve(&range, false).open();
        let (first, second) = match &range {
            Type::List(item) if fold.var2.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Var(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let error = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or \
                     dynamic)"
                );
                (self.fail(fold.range, error), Type::Dyn)
            }
        };
        let outer = self.scope.len();
        self.scope.push((fold.accu.clone(), accu.clone()));
        self.scope.push((fold.var.clone(), first));
        if let Some(var2) = &fold.var2 {
            self.scope.push((var2.clone(), second));
        }
        let condition = self.check(fold.condition);
        self.expect(fold.condition, &Type::Bool, &condition);
        let step = self.check(fold.step);
        self.expect(fold.step, &accu, &step);
        self.scope.truncate(outer + 1);
        let result = self.check(fold.result);
        self.scope.truncate(outer);
        self.bindings.resolve(&result, false)
    }

    fn expect(&mut self, id: Id, wanted: &Type<'m>, found: &Type<'m>) {
        if !self.bindings.assign(wanted, found) {
            let wanted = self.bindings.resolve(wanted, true);
            let found = self.bindings.resolve(found, true);
            self.fail(id, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}

fn literal_type<'m>(value: &Value<'_>) -> Type<'m> {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        _ => Type::Dyn,
    }
}
