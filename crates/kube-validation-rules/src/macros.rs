//! Macros: calls that stand for loops and presence tests.
//!
//! Source: cel-go `parser/macro.go`, `ext/comprehensions.go`, `ext/lists.go` and `cel/library.go`.
//! `existsOne` with one variable is not a macro in Kubernetes, and with two it is.

use super::tree::{Expr, Fold, Id, Tree};
use super::value::Value;

/// The variable that loops collect into; no expression can spell it.
pub(super) const ACCUMULATOR: &str = "@result";
/// What it was called before; still not to be used.
const OLD_ACCUMULATOR: &str = "__result__";
/// Inserts into a map, and fails where the key is taken.
pub(super) const MAP_INSERT: &str = "cel.@mapInsert";
/// Sorts a list by another of the same length.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

/// What a loop goes through, and the names of its variables.
struct Range {
    over: Id,
    var: Box<str>,
    var2: Option<Box<str>>,
}

/// An expression that a macro does not take.
pub(super) struct Misuse {
    pub(super) of: Id,
    pub(super) text: String,
}

impl Misuse {
    fn new(of: Id, text: impl Into<String>) -> Self {
        Self { of, text: text.into() }
    }
}

/// The expansion of a call; `None` if it is not a macro.
///
/// # Errors
/// The call is a macro's, and its arguments are not.
pub(super) fn expand(
    tree: &mut Tree,
    function: &str,
    target: Option<Id>,
    args: &[Id],
) -> Result<Option<Id>, Misuse> {
    let Some(target) = target else {
        return match (function, args) {
            ("has", [field]) => has(tree, *field).map(Some),
            _ => Ok(None),
        };
    };
    let expanded = match (function, args) {
        ("all", [vars @ .., predicate]) if matches!(vars.len(), 1 | 2) => {
            let range = Range::new(tree, target, vars)?;
            all(tree, range, *predicate)
        }
        ("exists", [vars @ .., predicate]) if matches!(vars.len(), 1 | 2) => {
            let range = Range::new(tree, target, vars)?;
            exists(tree, range, *predicate)
        }
        ("exists_one", [vars @ .., predicate]) if matches!(vars.len(), 1 | 2) => {
            let range = Range::new(tree, target, vars)?;
            exists_one(tree, range, *predicate)
        }
        ("existsOne", [key, value, predicate]) => {
            let range = Range::new(tree, target, &[*key, *value])?;
            exists_one(tree, range, *predicate)
        }
        ("filter", [var, predicate]) => {
            let range = Range::of_items(tree, target, *var)?;
            collect(tree, range, Some(*predicate), *var)
        }
        ("map", [var, filter @ .., transform]) if filter.len() <= 1 => {
            let range = Range::of_items(tree, target, *var)?;
            collect(tree, range, filter.first().copied(), *transform)
        }
        ("transformList", [key, value, filter @ .., transform]) if filter.len() <= 1 => {
            let range = Range::new(tree, target, &[*key, *value])?;
            collect(tree, range, filter.first().copied(), *transform)
        }
        ("transformMap" | "transformMapEntry", [key, value, filter @ .., transform]) if filter.len() <= 1 => {
            let range = Range::new(tree, target, &[*key, *value])?;
            let key = (function == "transformMap").then(|| range.var.clone());
            insert_all(tree, range, filter.first().copied(), key, *transform)
        }
        ("sortBy", [var, key]) => sort_by(tree, target, *var, *key)?,
        ("optMap" | "optFlatMap", [var, body]) => {
            let refused = || format!("{function}() variable name must be a simple identifier");
            let name = simple_name(tree, *var).ok_or_else(|| Misuse::new(*var, refused()))?;
            map_optional(tree, target, name, *body, function == "optMap")
        }
        _ => return Ok(None),
    };
    Ok(Some(expanded))
}

fn has(tree: &mut Tree, argument: Id) -> Result<Id, Misuse> {
    match tree.get(argument) {
        Expr::Select { operand, field, .. } => {
            let test = Expr::Select { operand: *operand, field: field.clone(), test: true };
            Ok(tree.add(test))
        }
        _ => Err(Misuse::new(argument, "invalid argument to has() macro")),
    }
}

fn all(tree: &mut Tree, range: Range, predicate: Id) -> Id {
    let init = tree.literal(Value::Bool(true));
    let so_far = tree.accumulator();
    let condition = tree.call("@not_strictly_false", vec![so_far]);
    let accumulator = tree.accumulator();
    let step = tree.call("_&&_", vec![accumulator, predicate]);
    let result = tree.accumulator();
    tree.fold(range, init, condition, step, result)
}

fn exists(tree: &mut Tree, range: Range, predicate: Id) -> Id {
    let init = tree.literal(Value::Bool(false));
    let so_far = tree.accumulator();
    let not_yet = tree.call("!_", vec![so_far]);
    let condition = tree.call("@not_strictly_false", vec![not_yet]);
    let accumulator = tree.accumulator();
    let step = tree.call("_||_", vec![accumulator, predicate]);
    let result = tree.accumulator();
    tree.fold(range, init, condition, step, result)
}

fn exists_one(tree: &mut Tree, range: Range, predicate: Id) -> Id {
    let init = tree.literal(Value::Int(0));
    let (accumulator, one) = (tree.accumulator(), tree.literal(Value::Int(1)));
    let more = tree.call("_+_", vec![accumulator, one]);
    let step = tree.where_holds(Some(predicate), more);
    let (accumulator, one) = (tree.accumulator(), tree.literal(Value::Int(1)));
    let result = tree.call("_==_", vec![accumulator, one]);
    let condition = tree.literal(Value::Bool(true));
    tree.fold(range, init, condition, step, result)
}

/// A list of the transformed entries.
fn collect(tree: &mut Tree, range: Range, filter: Option<Id>, transform: Id) -> Id {
    let init = tree.add(Expr::List(Vec::new()));
    let accumulator = tree.accumulator();
    let one = tree.add(Expr::List(vec![(transform, false)]));
    let longer = tree.call("_+_", vec![accumulator, one]);
    let step = tree.where_holds(filter, longer);
    let condition = tree.literal(Value::Bool(true));
    let result = tree.accumulator();
    tree.fold(range, init, condition, step, result)
}

/// A map of the transformed entries: values for their keys, or maps of their own.
fn insert_all(tree: &mut Tree, range: Range, filter: Option<Id>, key: Option<Box<str>>, transform: Id) -> Id {
    let init = tree.add(Expr::Map(Vec::new()));
    let mut args = vec![tree.accumulator()];
    args.extend(key.map(|key| tree.add(Expr::Ident(key))));
    args.push(transform);
    let larger = tree.call(MAP_INSERT, args);
    let step = tree.where_holds(filter, larger);
    let condition = tree.literal(Value::Bool(true));
    let result = tree.accumulator();
    tree.fold(range, init, condition, step, result)
}

/// `list.sortBy(x, key(x))`: the list is bound to a name, and sorted by the list of its keys.
fn sort_by(tree: &mut Tree, target: Id, var: Id, key: Id) -> Result<Id, Misuse> {
    if matches!(tree.get(target), Expr::Literal(_) | Expr::Map(_) | Expr::Message(_)) {
        return Err(Misuse::new(
            target,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        ));
    }
    let input = tree.add(Expr::Ident(SORT_INPUT.into()));
    let range = Range::of_items(tree, input, var)?;
    let keys = collect(tree, range, None, key);
    let list = tree.add(Expr::Ident(SORT_INPUT.into()));
    let sorted = tree.method(SORT_BY_KEYS, list, vec![keys]);
    Ok(tree.bind(SORT_INPUT.into(), target, sorted))
}

fn map_optional(tree: &mut Tree, target: Id, var: Box<str>, body: Id, wrap: bool) -> Id {
    let present = tree.method("hasValue", target, Vec::new());
    let again = tree.copy(target);
    let value = tree.method("value", again, Vec::new());
    let mut mapped = tree.bind(var, value, body);
    if wrap {
        mapped = tree.call("optional.of", vec![mapped]);
    }
    let none = tree.call("optional.none", Vec::new());
    tree.call("_?_:_", vec![present, mapped, none])
}

fn simple_name(tree: &Tree, id: Id) -> Option<Box<str>> {
    match tree.get(id) {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

impl Range {
    /// The range of a macro that goes through keys and values as well as through items.
    fn new(tree: &Tree, over: Id, vars: &[Id]) -> Result<Self, Misuse> {
        Self::named(tree, over, vars, "argument must be a simple name")
    }

    /// The range of a macro that goes through items alone.
    fn of_items(tree: &Tree, over: Id, var: Id) -> Result<Self, Misuse> {
        Self::named(tree, over, &[var], "argument is not an identifier")
    }

    fn named(tree: &Tree, over: Id, vars: &[Id], unnamed: &str) -> Result<Self, Misuse> {
        let name = |var: &Id| simple_name(tree, *var).ok_or_else(|| Misuse::new(*var, unnamed));
        let names = vars.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        if let ([_, second], [name, same]) = (vars, &*names)
            && name == same
        {
            return Err(Misuse::new(*second, format!("duplicate variable name: {name}")));
        }
        let mut named = vars.iter().zip(&names);
        if let Some((var, _)) = named.find(|(_, name)| ***name == *OLD_ACCUMULATOR) {
            return Err(Misuse::new(*var, "iteration variable overwrites accumulator variable"));
        }
        let mut names = names.into_iter();
        let var = names.next().ok_or_else(|| Misuse::new(over, "a loop needs a variable"))?;
        Ok(Self { over, var, var2: names.next() })
    }
}

impl Tree {
    fn literal(&mut self, value: Value<'static>) -> Id {
        self.add(Expr::Literal(value))
    }

    fn accumulator(&mut self) -> Id {
        self.add(Expr::Ident(ACCUMULATOR.into()))
    }

    fn call(&mut self, function: &str, args: Vec<Id>) -> Id {
        self.add(Expr::Call { function: function.into(), target: None, args })
    }

    fn method(&mut self, function: &str, target: Id, args: Vec<Id>) -> Id {
        self.add(Expr::Call { function: function.into(), target: Some(target), args })
    }

    /// A step, or the accumulator unchanged where the filter does not hold.
    fn where_holds(&mut self, filter: Option<Id>, step: Id) -> Id {
        let Some(filter) = filter else { return step };
        let unchanged = self.accumulator();
        self.call("_?_:_", vec![filter, step, unchanged])
    }

    fn fold(&mut self, range: Range, init: Id, condition: Id, step: Id, result: Id) -> Id {
        let Range { over, var, var2 } = range;
        let accu = ACCUMULATOR.into();
        self.add(Expr::Fold(Box::new(Fold { range: over, var, var2, accu, init, condition, step, result })))
    }

    /// An expression with a name for a value: a loop over nothing.
    fn bind(&mut self, name: Box<str>, value: Id, body: Id) -> Id {
        let range = self.add(Expr::List(Vec::new()));
        let condition = self.literal(Value::Bool(false));
        let step = self.add(Expr::Ident(name.clone()));
        let fold = Fold {
            range,
            var: UNUSED.into(),
            var2: None,
            accu: name,
            init: value,
            condition,
            step,
            result: body,
        };
        self.add(Expr::Fold(Box::new(fold)))
    }

    /// A copy of the expression.
    fn copy(&mut self, id: Id) -> Id {
        let mut expr = self.get(id).clone();
        match &mut expr {
            Expr::Literal(_) | Expr::Ident(_) | Expr::Message(_) => {}
            Expr::Select { operand, .. } => *operand = self.copy(*operand),
            Expr::Call { target, args, .. } => {
                *target = target.map(|target| self.copy(target));
                args.iter_mut().for_each(|arg| *arg = self.copy(*arg));
            }
            Expr::List(items) => items.iter_mut().for_each(|(item, _)| *item = self.copy(*item)),
            Expr::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.key = self.copy(entry.key);
                entry.value = self.copy(entry.value);
            }),
            Expr::Fold(fold) => {
                for part in
                    [&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result]
                {
                    *part = self.copy(*part);
                }
            }
        }
        self.add(expr)
    }
}
