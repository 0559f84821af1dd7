//! What a rule's literals show before it runs: patterns, times, format texts, lists and maps of mixed types.
//! Variables do not count. Other conversions of literals, such as `int('1')`, are done when the rule is
//! planned.
//!
//! Source: cel-go `cel/validator.go` and `ext/formatting.go`.

use super::check::{Checked, Reference};
use super::library::{Clause, clauses, unfit_text};
use super::plan::convert;
use super::problem::{Position, Problem};
use super::tree::{Expr, Id, Tree};
use super::types::Type;
use super::value::{Text, Value};
use go_text::regexp::syntax_error;

/// What is wrong with the literals of a checked expression.
pub(super) fn check(source: &str, tree: &Tree, checked: &Checked<'_>) -> Vec<Problem> {
    check_within(source, tree, checked, false)
}

/// Checks the literals of an expression in which lists and maps may be of mixed types.
pub(super) fn check_mixed(source: &str, tree: &Tree, checked: &Checked<'_>) -> Vec<Problem> {
    check_within(source, tree, checked, true)
}

fn check_within(source: &str, tree: &Tree, checked: &Checked<'_>, exempt: bool) -> Vec<Problem> {
    let mut wrong = Wrong { source, tree, found: Vec::new() };
    visit(tree, tree.root, exempt, &mut |id, exempt| check_one(tree, checked, id, exempt, &mut wrong));
    wrong.found
}

/// What was found so far.
struct Wrong<'t> {
    source: &'t str,
    tree: &'t Tree,
    found: Vec<Problem>,
}

impl Wrong<'_> {
    fn add(&mut self, id: Id, text: String) {
        self.found.push(Problem { at: Position::of(self.source, self.tree.place(id)), text });
    }
}

/// Calls back for every expression that counts, and whether it stands within a call of `format`.
fn visit(tree: &Tree, id: Id, exempt: bool, seen: &mut impl FnMut(Id, bool)) {
    seen(id, exempt);
    match tree.get(id) {
        Expr::Literal(_) | Expr::Ident(_) | Expr::Message(_) => {}
        Expr::Select { operand, .. } => visit(tree, *operand, exempt, seen),
        Expr::Call { function, target, args } => {
            let exempt = exempt || **function == *"format";
            target.iter().chain(args).for_each(|arg| visit(tree, *arg, exempt, seen));
        }
        Expr::List(items) => items.iter().for_each(|(item, _)| visit(tree, *item, exempt, seen)),
        Expr::Map(entries) => entries.iter().for_each(|entry| {
            visit(tree, entry.key, exempt, seen);
            visit(tree, entry.value, exempt, seen);
        }),
        Expr::Fold(fold) => {
            for part in [fold.range, fold.init, fold.condition, fold.step, fold.result] {
                visit(tree, part, exempt, seen);
            }
        }
    }
}

fn check_one(tree: &Tree, checked: &Checked<'_>, id: Id, exempt: bool, wrong: &mut Wrong<'_>) {
    match tree.get(id) {
        Expr::Call { function, target, args } => {
            check_argument(checked, id, function, args, wrong);
            if **function == *"format"
                && let (Some(target), [args]) = (target, &args[..])
            {
                check_format(tree, checked, (id, *target, *args), wrong);
            }
        }
        Expr::List(items) if !exempt => {
            let types = items.iter().map(|(item, optional)| (*item, entry_type(checked, *item, *optional)));
            // Upstream stops at the first in a list, and not in a map.
            check_same(types, 1, wrong);
        }
        Expr::Map(entries) if !exempt => {
            let keys = entries.iter().map(|entry| (entry.key, entry_type(checked, entry.key, false)));
            check_same(keys, usize::MAX, wrong);
            let values =
                entries.iter().map(|entry| (entry.value, entry_type(checked, entry.value, entry.optional)));
            check_same(values, usize::MAX, wrong);
        }
        _ => {}
    }
}

fn check_argument(checked: &Checked<'_>, id: Id, function: &str, args: &[Id], wrong: &mut Wrong<'_>) {
    let Some((arg, Expr::Literal(literal))) = args.first().map(|arg| (*arg, wrong.tree.get(*arg))) else {
        return;
    };
    let invalid = match (function, literal) {
        // Upstream looks at the first argument, be it the pattern or, of `matches(text, pattern)`, the text.
        ("matches", Value::String(text)) => syntax_error(text.as_str()).is_some(),
        ("duration" | "timestamp", literal) => match &checked.references[id.index()] {
            Reference::Call { candidates, .. } => convert(candidates, literal.clone()).is_err(),
            _ => false,
        },
        _ => false,
    };
    if invalid {
        wrong.add(arg, format!("invalid {function} argument"));
    }
}

fn entry_type<'m>(checked: &Checked<'m>, id: Id, optional: bool) -> Type<'m> {
    let ty = checked.types[id.index()].clone().unwrap_or(Type::Dyn);
    if optional { ty.unwrap_optional().0 } else { ty }
}

fn check_same<'m>(mut types: impl Iterator<Item = (Id, Type<'m>)>, most: usize, wrong: &mut Wrong<'_>) {
    let Some((_, first)) = types.next() else { return };
    for (id, other) in types.filter(|(_, ty)| !ty.is(&first)).take(most) {
        wrong.add(id, format!("expected type '{first}' but found '{other}'"));
    }
}

/// A literal format text with a literal list of values.
fn check_format(tree: &Tree, checked: &Checked<'_>, (id, target, args): (Id, Id, Id), wrong: &mut Wrong<'_>) {
    let is_format = matches!(&checked.references[id.index()], Reference::Call { .. });
    let (Expr::Literal(Value::String(format)), Expr::List(values)) = (tree.get(target), tree.get(args))
    else {
        return;
    };
    if !is_format {
        return;
    }
    if let Err((at, error)) = check_clauses(tree, checked, format, values) {
        wrong.add(at.unwrap_or(id), error);
    }
}

/// An error is about the call, unless it names one of the values.
fn check_clauses(
    tree: &Tree,
    checked: &Checked<'_>,
    format: &Text<'_>,
    values: &[(Id, bool)],
) -> Result<(), (Option<Id>, String)> {
    let mut used = 0;
    for clause in clauses(format.as_str()).map_err(|error| (None, error.to_owned()))? {
        let Clause::Value { verb, .. } = clause else { continue };
        let (value, _) = *values.get(used).ok_or_else(|| (None, format!("index {used} out of range")))?;
        used += 1;
        let ty = entry_type(checked, value, false);
        let unprintable = (verb == 's').then(|| unprintable(tree, checked, value)).flatten();
        let fits = match verb {
            's' => unprintable.is_none(),
            'd' | 'o' => matches!(ty, Type::Int | Type::Uint | Type::Dyn),
            'f' | 'e' => matches!(ty, Type::Double | Type::String | Type::Dyn),
            'b' => matches!(ty, Type::Int | Type::Uint | Type::Bool | Type::Dyn),
            _ => matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes | Type::Dyn),
        };
        if !fits {
            let at = unprintable.unwrap_or(value);
            let given = entry_type(checked, at, false);
            return Err((Some(at), unfit_text(verb, &name_of_values(&given))));
        }
    }
    if values.len() > used {
        let given = values.len();
        let text = format!("too many arguments supplied to string.format (expected {used}, got {given})");
        return Err((None, text));
    }
    Ok(())
}

/// What values of a type call it.
fn name_of_values(ty: &Type<'_>) -> String {
    let name = match ty.open() {
        Type::Null => "null_type",
        Type::Duration => "google.protobuf.Duration",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::List(_) => "list",
        Type::Map(_) => "map",
        Type::Optional(_) => "optional_type",
        Type::Meta(_) => "type",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// The value, or the first one in its literal, that `%s` does not take.
fn unprintable(tree: &Tree, checked: &Checked<'_>, id: Id) -> Option<Id> {
    let printable = matches!(
        entry_type(checked, id, false).open(),
        Type::Dyn
            | Type::List(_)
            | Type::Map(_)
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::Bool
            | Type::String
            | Type::Timestamp
            | Type::Bytes
            | Type::Duration
            | Type::Meta(_)
            | Type::Null
    );
    if !printable {
        return Some(id);
    }
    let below = |id: Id| unprintable(tree, checked, id);
    match tree.get(id) {
        Expr::List(items) => items.iter().find_map(|(item, _)| below(*item)),
        Expr::Map(entries) => {
            entries.iter().find_map(|entry| below(entry.key).or_else(|| below(entry.value)))
        }
        _ => None,
    }
}
