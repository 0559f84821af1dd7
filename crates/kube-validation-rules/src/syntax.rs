//! From the text of an expression to its tree, macros expanded.
//!
//! The text is parsed by the `cel` crate, whose grammar is cel-go's own; its evaluation is not used (see the
//! parent module). Macros are expanded here as cel-go expands them, since what a rule costs depends on it.

use std::sync::Arc;

use cel::Env;
use cel::common::ast::{EntryExpr, Expr as Parsed, IdedExpr, LiteralValue, SourceInfo};
use cel::parser::{ParseError, ParseErrors};

use super::library::Library;
use super::macros::{self, Misuse};
use super::problem::{Position, Problem};
use super::tree::{Entry, Expr, Id, Tree};
use super::value::{Text, Value};

/// As cel-go: expressions of more code points are not parsed.
const MAX_CODE_POINTS: usize = 100_000;

/// As cel-go: nor such with more expressions in each other, in parentheses and brackets or not.
const MAX_DEPTH: u16 = 250;

/// Stack for the parser's own recursion, per byte of the expression and at least, in bytes. Without
/// optimization an expression in parentheses takes 140 kB.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 16 * 1024 } else { 4 * 1024 };
const MIN_STACK: usize = if cfg!(debug_assertions) { 64 << 20 } else { 4 << 20 };

/// Parses an expression.
///
/// # Errors
/// What is wrong with its text.
pub(super) fn parse(source: &str, library: Library) -> Result<Tree, Vec<Problem>> {
    let size = source.chars().count();
    if size > MAX_CODE_POINTS {
        let text = format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
        return Err(vec![Problem { at: NOWHERE, text }]);
    }
    let stack = MIN_STACK + source.len() * STACK_PER_BYTE;
    // The parsed tree is taken apart within, too: it recurses as it is dropped.
    stacker::grow(stack, || {
        // An environment without macros: which there are, and what they expand to, is decided here. The crate
        // accepts one level more than the limit that it is given.
        let parser = Env::default()
            .parser()
            .max_recursion_depth(MAX_DEPTH - 1)
            .enable_ident_escape_syntax(library.has_escaped_names());
        let (parsed, places) = parser.parse_with_source_info(source).map_err(problems)?;
        let mut tree = Tree::new();
        let context = Context { places, library };
        match lower(&mut tree, &context, &parsed, 0) {
            Ok(root) => {
                tree.root = root;
                Ok(tree)
            }
            Err(text) => Err(vec![Problem { at: Position::of(source, tree.here), text }]),
        }
    })
}

/// Where a problem is that has no place, as cel-go writes it.
const NOWHERE: Position = Position { line: 1, column: 0 };

fn problems(errors: ParseErrors) -> Vec<Problem> {
    let problem = |error: ParseError| {
        let (line, column) = error.pos;
        let at = Position {
            line: usize::try_from(line).unwrap_or_default(),
            column: usize::try_from(column - 1).unwrap_or_default(),
        };
        Problem { at, text: error.msg }
    };
    errors.errors.into_iter().map(problem).collect()
}

/// `depth` counts what cel-go counts: what stands around an expression, but for lists, maps, arguments and
/// logic.
fn lower(tree: &mut Tree, context: &Context, parsed: &IdedExpr, depth: u16) -> Result<Id, String> {
    let depth = depth + u16::from(is_counted(&parsed.expr));
    if depth > MAX_DEPTH {
        return Err("max recursion depth exceeded".to_owned());
    }
    {
        let expr = match &parsed.expr {
            Parsed::Literal(literal) => Expr::Literal(to_value(literal)),
            Parsed::Ident(name) => Expr::Ident(name.as_str().into()),
            Parsed::Select(select) => Expr::Select {
                operand: lower(tree, context, &select.operand, depth)?,
                field: select.field.as_str().into(),
                test: select.test,
            },
            Parsed::Call(call) => {
                let target =
                    call.target.as_deref().map(|target| lower(tree, context, target, depth)).transpose()?;
                let args = lower_all(tree, context, &call.args, depth)?;
                tree.here = context.place(parsed);
                match self::expand(tree, context, &call.func_name, target, &args)? {
                    Some(expanded) => return Ok(expanded),
                    None => Expr::Call { function: call.func_name.as_str().into(), target, args },
                }
            }
            Parsed::List(list) => {
                let items = lower_all(tree, context, &list.elements, depth)?.into_iter().enumerate();
                Expr::List(items.map(|(index, id)| (id, list.optional_indices.contains(&index))).collect())
            }
            Parsed::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err("unexpected map entry".to_owned());
                    };
                    let key = lower(tree, context, &entry.key, depth)?;
                    let value = lower(tree, context, &entry.value, depth)?;
                    entries.push(Entry { key, value, optional: entry.optional });
                }
                Expr::Map(entries)
            }
            Parsed::Struct(message) => Expr::Message(message.type_name.as_str().into()),
            // The parser makes loops of macros only.
            Parsed::Comprehension(_) | Parsed::Unspecified => {
                return Err("unspecified expression".to_owned());
            }
        };
        tree.here = context.place(parsed);
        Ok(tree.add(expr))
    }
}

fn expand(
    tree: &mut Tree,
    context: &Context,
    function: &str,
    target: Option<Id>,
    args: &[Id],
) -> Result<Option<Id>, String> {
    if function == "sortBy" && !context.library.has_sort_by() {
        return Ok(None);
    }
    macros::expand(tree, function, target, args).map_err(|Misuse { of, text }| {
        tree.here = tree.place(of);
        text
    })
}

/// What lowering depends on.
struct Context {
    places: SourceInfo,
    library: Library,
}

impl Context {
    fn place(&self, parsed: &IdedExpr) -> u32 {
        self.places.offset_for(parsed.id).map_or(0, |(start, _)| start)
    }
}

fn lower_all(tree: &mut Tree, context: &Context, parsed: &[IdedExpr], depth: u16) -> Result<Vec<Id>, String> {
    parsed.iter().map(|parsed| lower(tree, context, parsed, depth)).collect()
}

fn is_counted(parsed: &Parsed) -> bool {
    match parsed {
        Parsed::Select(_) => true,
        Parsed::Call(call) => {
            let operator = call.func_name.starts_with(['_', '@']);
            call.target.is_some() || (operator && !matches!(&*call.func_name, "_&&_" | "_||_"))
        }
        _ => false,
    }
}

fn to_value(literal: &LiteralValue) -> Value<'static> {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Value::Bytes(Arc::from(value.inner())),
        LiteralValue::Double(value) => Value::Double(*value.inner()),
        LiteralValue::Int(value) => Value::Int(*value.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(value) => Value::String(Text::Shared(value.inner().into())),
        LiteralValue::UInt(value) => Value::Uint(*value.inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of apiextensions-apiserver v0.37.2 with cel-go v0.29.2.
    #[test]
    fn what_a_macro_does_not_take_is_named_where_it_stands() {
        for (rule, expected) in [
            ("has(self['a'])", "1:9: invalid argument to has() macro"),
            ("has(self.a.b())", "1:13: invalid argument to has() macro"),
            ("true &&\n  has(self['a'])", "2:11: invalid argument to has() macro"),
            ("self.l.all(i, has(i[0])) || has(1)", "1:20: invalid argument to has() macro"),
            ("self.l.all(i, i, true)", "1:15: duplicate variable name: i"),
            ("self.l.all(i.x, true)", "1:13: argument must be a simple name"),
            ("self.l.exists_one(3, true)", "1:19: argument must be a simple name"),
            ("self.l.transformMap(1, v, v)", "1:21: argument must be a simple name"),
            ("self.l.exists(__result__, 1, true)", "1:27: argument must be a simple name"),
            ("self.l.exists(__result__, __result__, true)", "1:27: duplicate variable name: __result__"),
            (
                "self.l.exists(i, __result__, true)",
                "1:18: iteration variable overwrites accumulator variable",
            ),
            ("self.l.map(1, 2)", "1:12: argument is not an identifier"),
            ("self.l.filter(1, true)", "1:15: argument is not an identifier"),
            ("self.l.sortBy(1, 2)", "1:15: argument is not an identifier"),
            ("self.?a.optFlatMap(x.y, 2)", "1:21: optFlatMap() variable name must be a simple identifier"),
        ] {
            let Err(problems) = parse(rule, Library::ALL) else { panic!("{rule} is parsed") };
            let [Problem { at, text }] = &*problems else { panic!("{rule}: {problems:?}") };
            assert_eq!(format!("{}:{}: {text}", at.line, at.column + 1), expected, "{rule}");
        }
    }
}
