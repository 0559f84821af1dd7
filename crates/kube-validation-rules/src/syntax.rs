//! Expressions as trees in one allocation, macros expanded.
//! It must not know types nor values of an object.
//!
//! The text is parsed by the `cel` crate, whose grammar is cel-go's own; its evaluation is not used (see the parent module).
//! Macros are expanded here as cel-go expands them, since what a rule costs depends on it.

use std::sync::Arc;

use cel::Env;
use cel::common::ast::{EntryExpr, Expr as Parsed, IdedExpr, LiteralValue};

use kube_structural_schema::json::level;

use super::macros;
use super::value::{Text, Value};

/// As cel-go: expressions of more code points are not parsed.
const MAX_CODE_POINTS: usize = 100_000;

/// As cel-go: nor such with more expressions in each other, in parentheses and brackets or not.
const MAX_DEPTH: u16 = 250;

/// Stack for the parser's own recursion, per byte of the expression and at least, in bytes.
const STACK_PER_BYTE: usize = 4 * 1024;
const MIN_STACK: usize = 4 * 1024 * 1024;

/// The place of an expression in its [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// An expression and all below it.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Expr>,
    pub(super) root: Id,
}

/// One expression.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Literal(Value<'static>),
    /// A leading dot means the outermost scope.
    Ident(Box<str>),
    Select {
        operand: Id,
        field: Box<str>,
        /// `has()`
        test: bool,
    },
    Call {
        function: Box<str>,
        target: Option<Id>,
        args: Vec<Id>,
    },
    /// Each with whether it stands behind a `?`.
    List(Vec<(Id, bool)>),
    Map(Vec<Entry>),
    /// `Name{…}`; Kubernetes has no type that can be made this way.
    Message(Box<str>),
    Fold(Box<Fold>),
}

/// An entry of a map literal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) key: Id,
    pub(super) value: Id,
    /// Behind a `?`.
    pub(super) optional: bool,
}

/// What every macro over a list or map becomes: a loop with an accumulator.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) range: Id,
    pub(super) var: Box<str>,
    /// The second variable of `transformMap` and its like.
    pub(super) var2: Option<Box<str>>,
    pub(super) accu: Box<str>,
    pub(super) init: Id,
    pub(super) condition: Id,
    pub(super) step: Id,
    pub(super) result: Id,
}

impl Tree {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong with its text.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        if source.chars().count() > MAX_CODE_POINTS {
            return Err(format!("expression code point size exceeds limit: limit {MAX_CODE_POINTS}"));
        }
        let stack = MIN_STACK + source.len() * STACK_PER_BYTE;
        // The parsed tree is taken apart within, too: it recurses as it is dropped.
        stacker::grow(stack, || {
            // An environment of no macros: which there are, and what becomes of them, is decided here.
            // The crate takes one level more than it is told.
            let parser = Env::default().parser().max_recursion_depth(MAX_DEPTH - 1);
            let parsed = parser.parse(source).map_err(|errors| errors.to_string())?;
            let mut tree = Self { nodes: Vec::new(), root: Id(0) };
            tree.root = tree.lower(&parsed, 0)?;
            Ok(tree)
        })
    }

    pub(super) fn get(&self, id: Id) -> &Expr {
        &self.nodes[id.0 as usize]
    }

    /// How many expressions there are; every [`Id::index`] is below.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All expressions, in no useful order, with some that macros have left behind.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Expr)> {
        (0..).map(Id).zip(&self.nodes)
    }

    /// Adds an expression.
    pub(super) fn add(&mut self, expr: Expr) -> Id {
        self.nodes.push(expr);
        Id(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
    }

    /// `depth` counts what cel-go counts: what stands around an expression, but for lists, maps, arguments and logic.
    fn lower(&mut self, parsed: &IdedExpr, depth: u16) -> Result<Id, String> {
        let depth = depth + u16::from(is_counted(&parsed.expr));
        if depth > MAX_DEPTH {
            return Err("max recursion depth exceeded".to_owned());
        }
        level(|| {
            let expr = match &parsed.expr {
                Parsed::Literal(literal) => Expr::Literal(to_value(literal)),
                Parsed::Ident(name) => Expr::Ident(name.as_str().into()),
                Parsed::Select(select) => Expr::Select {
                    operand: self.lower(&select.operand, depth)?,
                    field: select.field.as_str().into(),
                    test: select.test,
                },
                Parsed::Call(call) => {
                    let target =
                        call.target.as_deref().map(|target| self.lower(target, depth)).transpose()?;
                    let args = self.lower_all(&call.args, depth)?;
                    match macros::expand(self, &call.func_name, target, &args)? {
                        Some(expanded) => return Ok(expanded),
                        None => Expr::Call { function: call.func_name.as_str().into(), target, args },
                    }
                }
                Parsed::List(list) => {
                    let items = self.lower_all(&list.elements, depth)?.into_iter().enumerate();
                    Expr::List(
                        items.map(|(index, id)| (id, list.optional_indices.contains(&index))).collect(),
                    )
                }
                Parsed::Map(map) => {
                    let mut entries = Vec::with_capacity(map.entries.len());
                    for entry in &map.entries {
                        let EntryExpr::MapEntry(entry) = &entry.expr else {
                            return Err("unexpected map entry".to_owned());
                        };
                        let key = self.lower(&entry.key, depth)?;
                        let value = self.lower(&entry.value, depth)?;
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
            Ok(self.add(expr))
        })
    }

    fn lower_all(&mut self, parsed: &[IdedExpr], depth: u16) -> Result<Vec<Id>, String> {
        parsed.iter().map(|parsed| self.lower(parsed, depth)).collect()
    }
}

impl Id {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
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
