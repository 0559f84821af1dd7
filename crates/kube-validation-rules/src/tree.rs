//! Expressions as trees in one allocation.

use super::value::Value;

/// The place of an expression in its [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// An expression and all below it.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Expr>,
    places: Vec<u32>,
    pub(super) root: Id,
    /// Where what is added next stands in the text: an offset in bytes.
    pub(super) here: u32,
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
    /// `Name{…}`; Kubernetes has only the well-known types of protocol buffers to make this way.
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
    /// A tree of nothing yet; its root is set when it is known.
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), places: Vec::new(), root: Id(0), here: 0 }
    }

    pub(super) fn get(&self, id: Id) -> &Expr {
        &self.nodes[id.0 as usize]
    }

    /// Where an expression stands in the text: an offset in bytes. What a macro adds stands where its
    /// call does.
    pub(super) fn place(&self, id: Id) -> u32 {
        self.places[id.0 as usize]
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
        self.places.push(self.here);
        Id(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
    }
}

impl Id {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}
