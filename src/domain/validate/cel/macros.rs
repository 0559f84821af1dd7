//! The macros that cel-go has and the parser's crate has not: two-variable loops, `sortBy`, `optMap` and `optFlatMap`.
//! It must not evaluate anything.
//!
//! Source: cel-go `ext/comprehensions.go`, `ext/lists.go` and `cel/library.go`.

use super::syntax::{Expr, Fold, Id, Tree};
use super::value::Value;

/// The variable that loops collect into; no expression can spell it.
pub(super) const ACCUMULATOR: &str = "@result";
/// What it was called before; still not to be used.
pub(super) const OLD_ACCUMULATOR: &str = "__result__";
/// Inserts into a map, and fails where the key is taken.
pub(super) const MAP_INSERT: &str = "cel.@mapInsert";
/// Sorts a list by another of the same length.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

/// The expansion of a call, or none where it is no macro.
///
/// # Errors
/// The call is a macro's, and its arguments are not.
pub(super) fn expand(
    tree: &mut Tree,
    function: &str,
    target: Option<Id>,
    args: &[Id],
) -> Result<Option<Id>, String> {
    let Some(target) = target else { return Ok(None) };
    match (function, args) {
        ("all", [key, value, predicate]) => all(tree, target, *key, *value, *predicate).map(Some),
        ("exists", [key, value, predicate]) => exists(tree, target, *key, *value, *predicate).map(Some),
        ("existsOne" | "exists_one", [key, value, predicate]) => {
            exists_one(tree, target, *key, *value, *predicate).map(Some)
        }
        ("transformList" | "transformMap" | "transformMapEntry", [key, value, filter @ .., transform])
            if filter.len() <= 1 =>
        {
            let vars = two_variables(tree, *key, *value)?;
            Ok(Some(transform_to(tree, function, target, vars, filter.first().copied(), *transform)))
        }
        ("sortBy", [var, key]) => sort_by(tree, target, *var, *key).map(Some),
        ("optMap" | "optFlatMap", [var, body]) => {
            let var = simple_name(tree, *var)
                .ok_or_else(|| format!("{function}() variable name must be a simple identifier"))?;
            Ok(Some(map_optional(tree, target, var, *body, function == "optMap")))
        }
        _ => Ok(None),
    }
}

fn all(tree: &mut Tree, range: Id, key: Id, value: Id, predicate: Id) -> Result<Id, String> {
    let vars = two_variables(tree, key, value)?;
    let init = tree.literal(Value::Bool(true));
    let so_far = tree.accumulator();
    let condition = tree.call("@not_strictly_false", vec![so_far]);
    let accumulator = tree.accumulator();
    let step = tree.call("_&&_", vec![accumulator, predicate]);
    let result = tree.accumulator();
    Ok(tree.fold(range, vars, init, condition, step, result))
}

fn exists(tree: &mut Tree, range: Id, key: Id, value: Id, predicate: Id) -> Result<Id, String> {
    let vars = two_variables(tree, key, value)?;
    let init = tree.literal(Value::Bool(false));
    let so_far = tree.accumulator();
    let not_yet = tree.call("!_", vec![so_far]);
    let condition = tree.call("@not_strictly_false", vec![not_yet]);
    let accumulator = tree.accumulator();
    let step = tree.call("_||_", vec![accumulator, predicate]);
    let result = tree.accumulator();
    Ok(tree.fold(range, vars, init, condition, step, result))
}

fn exists_one(tree: &mut Tree, range: Id, key: Id, value: Id, predicate: Id) -> Result<Id, String> {
    let vars = two_variables(tree, key, value)?;
    let init = tree.literal(Value::Int(0));
    let condition = tree.literal(Value::Bool(true));
    let (accumulator, one) = (tree.accumulator(), tree.literal(Value::Int(1)));
    let more = tree.call("_+_", vec![accumulator, one]);
    let unchanged = tree.accumulator();
    let step = tree.call("_?_:_", vec![predicate, more, unchanged]);
    let (accumulator, one) = (tree.accumulator(), tree.literal(Value::Int(1)));
    let result = tree.call("_==_", vec![accumulator, one]);
    Ok(tree.fold(range, vars, init, condition, step, result))
}

fn transform_to(
    tree: &mut Tree,
    function: &str,
    range: Id,
    vars: (Box<str>, Box<str>),
    filter: Option<Id>,
    transform: Id,
) -> Id {
    let accumulator = tree.accumulator();
    let (init, step) = match function {
        "transformList" => {
            let one = tree.add(Expr::List(vec![(transform, false)]));
            (Expr::List(Vec::new()), tree.call("_+_", vec![accumulator, one]))
        }
        "transformMap" => {
            let key = tree.add(Expr::Ident(vars.0.clone()));
            (Expr::Map(Vec::new()), tree.call(MAP_INSERT, vec![accumulator, key, transform]))
        }
        _ => (Expr::Map(Vec::new()), tree.call(MAP_INSERT, vec![accumulator, transform])),
    };
    let step = match filter {
        Some(filter) => {
            let unchanged = tree.accumulator();
            tree.call("_?_:_", vec![filter, step, unchanged])
        }
        None => step,
    };
    let init = tree.add(init);
    let condition = tree.literal(Value::Bool(true));
    let result = tree.accumulator();
    tree.fold(range, vars, init, condition, step, result)
}

/// `list.sortBy(x, key(x))`: the list is bound to a name, and sorted by the list of its keys.
fn sort_by(tree: &mut Tree, target: Id, var: Id, key: Id) -> Result<Id, String> {
    if matches!(tree.get(target), Expr::Literal(_) | Expr::Map(_) | Expr::Message(_)) {
        return Err(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression".to_owned()
        );
    }
    let var = simple_name(tree, var).ok_or("argument is not an identifier")?;
    let input = tree.add(Expr::Ident(SORT_INPUT.into()));
    let init = tree.add(Expr::List(Vec::new()));
    let condition = tree.literal(Value::Bool(true));
    let accumulator = tree.accumulator();
    let one = tree.add(Expr::List(vec![(key, false)]));
    let step = tree.call("_+_", vec![accumulator, one]);
    let result = tree.accumulator();
    let fold = Fold { range: input, var, var2: None, accu: ACCUMULATOR.into(), init, condition, step, result };
    let keys = tree.add(Expr::Fold(Box::new(fold)));
    let list = tree.add(Expr::Ident(SORT_INPUT.into()));
    let sorted = tree.add(Expr::Call { function: SORT_BY_KEYS.into(), target: Some(list), args: vec![keys] });
    Ok(tree.bind(SORT_INPUT.into(), target, sorted))
}

fn map_optional(tree: &mut Tree, target: Id, var: Box<str>, body: Id, wrap: bool) -> Id {
    let present = tree.add(Expr::Call { function: "hasValue".into(), target: Some(target), args: Vec::new() });
    let again = tree.copy(target);
    let value = tree.add(Expr::Call { function: "value".into(), target: Some(again), args: Vec::new() });
    let mut mapped = tree.bind(var, value, body);
    if wrap {
        mapped = tree.call("optional.of", vec![mapped]);
    }
    let none = tree.call("optional.none", Vec::new());
    tree.call("_?_:_", vec![present, mapped, none])
}

fn two_variables(tree: &Tree, key: Id, value: Id) -> Result<(Box<str>, Box<str>), String> {
    let name = |id| simple_name(tree, id).ok_or("argument must be a simple name");
    let (key, value) = (name(key)?, name(value)?);
    if key == value {
        return Err(format!("duplicate variable name: {key}"));
    }
    if [&key, &value].into_iter().any(|name| **name == *OLD_ACCUMULATOR) {
        return Err("iteration variable overwrites accumulator variable".to_owned());
    }
    Ok((key, value))
}

fn simple_name(tree: &Tree, id: Id) -> Option<Box<str>> {
    match tree.get(id) {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
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

    fn fold(
        &mut self,
        range: Id,
        (var, var2): (Box<str>, Box<str>),
        init: Id,
        condition: Id,
        step: Id,
        result: Id,
    ) -> Id {
        let accu = ACCUMULATOR.into();
        self.add(Expr::Fold(Box::new(Fold { range, var, var2: Some(var2), accu, init, condition, step, result })))
    }

    /// An expression with a name for a value: a loop over nothing.
    fn bind(&mut self, name: Box<str>, value: Id, body: Id) -> Id {
        let range = self.add(Expr::List(Vec::new()));
        let condition = self.literal(Value::Bool(false));
        let step = self.add(Expr::Ident(name.clone()));
        let fold =
            Fold { range, var: UNUSED.into(), var2: None, accu: name, init: value, condition, step, result: body };
        self.add(Expr::Fold(Box::new(fold)))
    }

    /// The same expression once more.
    fn copy(&mut self, id: Id) -> Id {
        crate::domain::json::level(|| {
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
        })
    }
}
