//! The walk over an expression that adds up what its parts may cost.
//! Each function has its own `price`.
//!
//! Source: cel-go `checker/cost.go`, with presence tests that cost nothing.

use std::collections::HashMap;

use super::path::Path;
use super::size::{self, Sizes};
use crate::check::{Checked, Reference};
use crate::cost::{NEW_LIST, NEW_MAP, READ};
use crate::macros::ACCUMULATOR;
use crate::price::{Argument, Entry, Given, Item};
use crate::range::Range;
use crate::tree::{Expr, Fold, Id, Tree};
use crate::types::Type;
use crate::value::Value;

/// The estimates for the expressions of one tree so far.
pub(super) struct Coster<'t, 'm> {
    tree: &'t Tree,
    checked: &'t Checked<'m>,
    declared: Sizes<'t>,
    server_minor: u32,
    paths: Vec<Option<Path<'t>>>,
    sizes: Vec<Option<Range>>,
    entries: Vec<Option<Entry>>,
    locals: HashMap<&'t str, Vec<Local<'t>>>,
}

/// A variable of a loop.
#[derive(Clone, Debug)]
struct Local<'t> {
    path: Option<Path<'t>>,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// An argument, before its size is looked up in the schema.
struct Part<'t, 'm> {
    path: Option<Path<'t>>,
    ty: Type<'m>,
    id: Id,
    size: Option<Range>,
}

impl<'t, 'm> Coster<'t, 'm> {
    pub(super) fn new(
        tree: &'t Tree,
        checked: &'t Checked<'m>,
        declared: Sizes<'t>,
        server_minor: u32,
    ) -> Self {
        let count = tree.len();
        Self {
            tree,
            checked,
            declared,
            server_minor,
            paths: vec![None; count],
            sizes: vec![None; count],
            entries: vec![None; count],
            locals: HashMap::new(),
        }
    }

    pub(super) fn cost(&mut self, id: Id) -> Range {
        match self.tree.get(id) {
            Expr::Literal(_) | Expr::Message(_) => Range::default(),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select { operand, field, test } => match self.checked.references[id.index()] {
                Reference::Type(name) => self.ident(id, name),
                _ => self.select(id, *operand, field, *test),
            },
            Expr::Call { function, target, args } => self.call(id, function, *target, args),
            Expr::List(items) => self.list(id, items),
            Expr::Map(entries) => {
                let mut sum = Range::default();
                let mut sizes = if entries.is_empty() { [Range::default(); 2] } else { [Range::NOTHING; 2] };
                for entry in entries {
                    for (part, size) in [entry.key, entry.value].into_iter().zip(&mut sizes) {
                        sum = sum.plus(self.cost(part));
                        *size = size.union(self.size_or_unknown(part));
                    }
                }
                let [key, value] = sizes;
                self.entries[id.index()] = Some(Entry { is_list: false, key, value });
                sum.plus(Range::fixed(NEW_MAP))
            }
            Expr::Fold(fold) if self.is_bind(fold) => self.bind(id, fold),
            Expr::Fold(fold) => self.fold(id, fold),
        }
    }

    fn ident(&mut self, id: Id, name: &'t str) -> Range {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => Some(Path::of(name)),
        };
        self.paths[id.index()] = path;
        Range::fixed(READ)
    }

    fn select(&mut self, id: Id, operand: Id, field: &'t str, test: bool) -> Range {
        let sum = self.cost(operand);
        if test {
            return sum;
        }
        let has_fields = matches!(
            self.type_of(operand).open(),
            Type::Map(_) | Type::Object(_) | Type::Mapping(_) | Type::Open(_) | Type::Var(_)
        ) || self.is_struct(operand);
        let path = Path::append(self.path_of(operand).as_ref(), field);
        self.paths[id.index()] = Some(path);
        if has_fields { sum.plus(Range::fixed(READ)) } else { sum }
    }

    fn is_struct(&self, id: Id) -> bool {
        matches!(self.type_of(id), Type::Named(name) if !matches!(name, "net.IP" | "net.CIDR"))
    }

    fn call(&mut self, id: Id, function: &'t str, target: Option<Id>, args: &'t [Id]) -> Range {
        let (name, candidates, keeps_target) = match &self.checked.references[id.index()] {
            Reference::Call { name, candidates, keeps_target } => (&**name, &candidates[..], *keeps_target),
            _ => (function, &[][..], false),
        };
        if let ("dyn", [arg]) = (name, args) {
            let cost = self.cost(*arg);
            self.copy_sizes(id, *arg);
            return cost.plus(Range::fixed(1));
        }
        let mut parts = Vec::with_capacity(args.len() + 1);
        let mut costs = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            parts.push(self.part(*arg));
        }
        let mut spent = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        match (name, &costs[..]) {
            ("_&&_" | "_||_", [left, right]) => return Range { min: left.min, ..left.plus(*right) },
            ("_?._", _) => return spent.plus(Range::fixed(1)),
            _ if candidates.is_empty() => return Range::default(),
            ("_?_:_", [condition, yes, no]) => {
                self.choose(id, &args[1..], &parts[1..]);
                return condition.plus(yes.union(*no));
            }
            _ => {}
        }
        if let Some(target) = target.filter(|_| keeps_target) {
            spent = spent.plus(self.cost(target));
            parts.insert(0, self.part(target));
        }
        let args_known = parts.into_iter().map(|part| self.known(part)).collect();
        let given = Given { args: args_known, server_minor: self.server_minor };
        let (mut cost, mut size) = (Range::NOTHING, None);
        for overload in candidates {
            let call = (overload.price.estimated)(&given);
            cost = cost.union(call.cost);
            self.set_entry(id, call.entry);
            if let Some(result) = call.size {
                size = Some(size.map_or(result, |size: Range| size.union(result)));
            }
            if let ("index_list" | "index_map", [list, ..]) = (overload.id.as_str(), args) {
                size = self.entry_of(*list).map(|entry| entry.value);
                let part = if overload.id == "index_list" { "@items" } else { "@values" };
                let path = Path::append(self.path_of(*list).as_ref(), part);
                self.paths[id.index()] = Some(path);
            }
            if size.is_none() {
                size = self.size_of(id);
            }
        }
        self.set_size(id, size);
        spent.plus(cost)
    }

    /// Either of two values may be the result.
    fn choose(&mut self, id: Id, branches: &[Id], parts: &[Part<'t, 'm>]) {
        let ([yes, no], [a, b]) = (branches, parts) else { return };
        let size = |part: &Part<'t, 'm>| part.size.unwrap_or(Range::UNKNOWN);
        self.set_size(id, Some(size(a).union(size(b))));
        self.set_entry(id, Entry::union(self.entry_of(*yes), self.entry_of(*no)));
    }

    fn list(&mut self, id: Id, items: &[(Id, bool)]) -> Range {
        let mut sum = Range::default();
        let mut value = if items.is_empty() { Range::default() } else { Range::NOTHING };
        for (item, _) in items {
            sum = sum.plus(self.cost(*item));
            value = value.union(self.size_or_unknown(*item));
        }
        self.entries[id.index()] = Some(Entry { is_list: true, key: Range::fixed(1), value });
        sum.plus(Range::fixed(NEW_LIST))
    }

    /// Whether a loop only gives a name to a value.
    fn is_bind(&self, fold: &Fold) -> bool {
        matches!(self.tree.get(fold.range), Expr::List(items) if items.is_empty())
            && matches!(self.tree.get(fold.condition), Expr::Literal(Value::Bool(false)))
    }

    fn bind(&mut self, id: Id, fold: &'t Fold) -> Range {
        let sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_variable(&fold.accu, fold.init);
        let sum = sum.plus(self.cost(fold.result));
        self.pop(&fold.accu);
        self.copy_sizes(id, fold.result);
        sum
    }

    fn fold(&mut self, id: Id, fold: &'t Fold) -> Range {
        let sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_variable(&fold.accu, fold.init);
        let is_list = self.is_list(fold.range);
        let (key_part, value_part) = if is_list { ("@indices", "@items") } else { ("@keys", "@values") };
        match &fold.var2 {
            Some(second) => {
                self.push_entry(&fold.var, fold.range, key_part, |entry| entry.key);
                self.push_entry(second, fold.range, value_part, |entry| entry.value);
            }
            None if is_list => self.push_entry(&fold.var, fold.range, value_part, |entry| entry.value),
            None => self.push_entry(&fold.var, fold.range, key_part, |entry| entry.key),
        }
        let condition = self.cost(fold.condition);
        let step = self.cost(fold.step);
        self.pop(&fold.var);
        if let Some(second) = &fold.var2 {
            self.pop(second);
        }
        let sum = sum.plus(self.cost(fold.result));
        self.pop(&fold.accu);
        let count = self.size_or_unknown(fold.range);
        match self.tree.get(fold.init) {
            Expr::Literal(_) => {
                let size = self.size_of(fold.init);
                self.set_size(id, size);
            }
            Expr::List(_) | Expr::Map(_) => {
                self.set_size(id, Some(count));
                if let Some(entry) = self.entry_of(fold.step) {
                    self.entries[id.index()] = Some(entry);
                }
            }
            _ => {}
        }
        sum.plus(count.times(step.plus(condition)))
    }

    fn is_list(&self, range: Id) -> bool {
        match self.entry_of(range) {
            Some(entry) => entry.is_list,
            None => matches!(self.type_of(range), Type::List(_) | Type::Array(_)),
        }
    }

    fn push_entry(&mut self, name: &'t str, range: Id, part: &'t str, size: impl Fn(Entry) -> Range) {
        let size = self.entry_of(range).map(size);
        let path = Path::append(self.path_of(range).as_ref(), part);
        self.locals.entry(name).or_default().push(Local { path: Some(path), size, entry: None });
    }

    fn push_variable(&mut self, name: &'t str, value: Id) {
        let path = self.path_of(value);
        let entry = self.entry_of(value);
        let size = self.size_of(value);
        self.locals.entry(name).or_default().push(Local { path, size, entry });
    }

    fn pop(&mut self, name: &str) {
        if let Some(scope) = self.locals.get_mut(name) {
            scope.pop();
        }
    }

    fn local(&self, name: &str) -> Option<&Local<'t>> {
        self.locals.get(name).and_then(|scope| scope.last())
    }

    fn local_of(&self, id: Id) -> Option<&Local<'t>> {
        match self.tree.get(id) {
            Expr::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn path_of(&self, id: Id) -> Option<Path<'t>> {
        match self.local_of(id) {
            Some(local) => local.path.clone(),
            None => self.paths[id.index()].clone(),
        }
    }

    fn type_of(&self, id: Id) -> Type<'m> {
        self.checked.types[id.index()].clone().unwrap_or(Type::Dyn)
    }

    fn part(&mut self, id: Id) -> Part<'t, 'm> {
        // What a loop collects into is not reached from a variable of the rule.
        let hidden = |path: &Path<'t>| matches!(path.parts().first(), Some(&ACCUMULATOR | &"__result__"));
        let path = self.path_of(id).filter(|path| !hidden(path));
        let size = self.size_of(id);
        // The prices of functions take what they know nothing of to be of any size.
        let size = size.or_else(|| self.declared.assumed.map(|_| self.declared.unknown()));
        Part { path, ty: self.type_of(id), id, size }
    }

    /// To be called after all arguments have been estimated, because they overwrite each other's paths.
    fn known(&self, part: Part<'t, 'm>) -> Argument<'m> {
        let declared = |path: Option<&Path<'t>>| self.declared_size(path).unwrap_or(self.declared.unknown());
        let item = match part.ty.open() {
            Type::List(item) => Some((*item).clone()),
            Type::Map(entry) => Some(entry.0.clone()),
            Type::Optional(inner) | Type::Meta(inner) => Some((*inner).clone()),
            _ => None,
        };
        let item = item.map(|ty| Item {
            is_text: matches!(ty, Type::String | Type::Bytes),
            size: declared(part.path.as_ref().map(|path| Path::copied(path, "@items")).as_ref()),
        });
        Argument {
            known: part.size,
            size: part.size.unwrap_or_else(|| declared(part.path.as_ref())),
            item,
            entry: self.entry_of(part.id),
            literal: match self.tree.get(part.id) {
                Expr::Literal(Value::Int(value)) => Some(*value),
                _ => None,
            },
            ty: part.ty,
        }
    }

    fn set_size(&mut self, id: Id, size: Option<Range>) {
        if size.is_some() {
            self.sizes[id.index()] = size;
        }
    }

    fn set_entry(&mut self, id: Id, entry: Option<Entry>) {
        if entry.is_some() {
            self.entries[id.index()] = entry;
        }
    }

    fn copy_sizes(&mut self, to: Id, from: Id) {
        let size = self.size_of(from);
        self.set_size(to, size);
        self.set_entry(to, self.entry_of(from));
    }

    fn size_or_unknown(&mut self, id: Id) -> Range {
        self.size_of(id).unwrap_or(self.declared.unknown())
    }

    fn size_of(&mut self, id: Id) -> Option<Range> {
        if let Some(size) = self.sizes[id.index()] {
            return Some(size);
        }
        if let Some(size) = size::of_literal(self.tree.get(id)) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(self.path_of(id).as_ref()) {
            self.sizes[id.index()] = Some(size);
            return Some(size);
        }
        if size::is_scalar(&self.type_of(id)) {
            return Some(Range::fixed(1));
        }
        self.local_of(id).and_then(|local| local.size)
    }

    /// The size, by the schema, of what a path leads to.
    fn declared_size(&self, path: Option<&Path<'t>>) -> Option<Range> {
        self.declared.at(&path?.parts())
    }

    fn entry_of(&self, id: Id) -> Option<Entry> {
        self.entries[id.index()].or_else(|| self.local_of(id).and_then(|local| local.entry))
    }
}
