//! One of the `x-kubernetes-validations`, compiled.
//!
//! Source: apiextensions-apiserver `schema/cel/compilation.go`.

use std::sync::Arc;

use kube_structural_schema::schema::{Rule, Schema};

use super::check::{Checked, Globals, check};
use super::field_path;
use super::library::Library;
use super::literals;
use super::model::Node;
use super::plan::Plan;
use super::problem::{self, Problem};
use super::syntax;
use super::tree::{Expr, Tree};
use super::types::Type;

/// A rule, and what is to be evaluated for it.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    /// The rule's expression, or what is wrong with it; nothing where the rule is blank or makes a message.
    pub(super) plan: Result<Option<Plan>, String>,
    /// Whether it names `oldSelf`: then it is about a change, and does not apply without one.
    pub(super) uses_old: bool,
    /// The expression for the message, if there is a sound one.
    pub(super) message: Option<Plan>,
    /// `fieldPath` in the form of findings, if it leads somewhere.
    pub(super) field_path: Option<String>,
}

impl CompiledRule {
    /// Compiles a rule of a node.
    pub(super) fn new(rule: &Rule, schema: &Schema, node: &Node) -> Self {
        let mut compiled =
            Self { rule: rule.clone(), plan: Ok(None), uses_old: false, message: None, field_path: None };
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let globals = globals(rule, node);
        match compile(&rule.rule, &globals, &Type::Bool) {
            Ok((plan, uses_old)) => {
                compiled.plan = Ok(plan);
                compiled.uses_old = uses_old;
            }
            Err(error) => {
                compiled.plan = Err(error);
                return compiled;
            }
        }
        if !rule.message_expression.is_empty() {
            // Upstream gives up on the rest of the rule with an expression that is not sound, and runs the
            // rule.
            let Ok((message, _)) = compile(&rule.message_expression, &globals, &Type::String) else {
                return compiled;
            };
            compiled.message = message;
        }
        compiled.field_path = field_path::normalize(&rule.field_path, schema);
        compiled
    }

    /// `optionalOldSelf: true`
    pub(super) fn is_optional(&self) -> bool {
        self.rule.optional_old_self == Some(true)
    }
}

/// The variables of a rule of a node.
pub(super) fn globals<'m>(rule: &Rule, node: &'m Node) -> Globals<'m> {
    let current = Type::of_node(node);
    let old = match rule.optional_old_self {
        Some(true) => Type::Optional(Arc::new(current.clone())),
        _ => current.clone(),
    };
    Globals { current, old, named: Vec::new() }
}

/// An expression of a type, and whether it names `oldSelf`.
///
/// There is no plan for one that makes a message.
fn compile(source: &str, globals: &Globals<'_>, wanted: &Type<'_>) -> Result<(Option<Plan>, bool), String> {
    let expression = Expression::new(source, globals, wanted, Library::ALL).map_err(|error| match error {
        Unsound::Malformed(text) => format!("compilation failed: {text}"),
        Unsound::OtherType => format!("cel expression must evaluate to a {wanted}"),
    })?;
    let is_planned = !expression.makes_message();
    let plan = is_planned.then(|| expression.plan()).transpose();
    let plan = plan.map_err(|error| format!("program instantiation failed: {error}"))?;
    Ok((plan, expression.names_old()))
}

/// An expression that is sound in itself.
pub(super) struct Expression<'m> {
    pub(super) tree: Tree,
    pub(super) checked: Checked<'m>,
}

/// Why an expression is not.
pub(super) enum Unsound {
    /// All that is wrong with it, as cel-go shows it.
    Malformed(String),
    /// Its values are of another type than is wanted.
    OtherType,
}

impl<'m> Expression<'m> {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// It does not compile.
    pub(super) fn new(
        source: &str,
        globals: &Globals<'m>,
        wanted: &Type<'m>,
        library: Library,
    ) -> Result<Self, Unsound> {
        let malformed = |problems: Vec<Problem>| Unsound::Malformed(problem::display(source, &problems));
        let tree = syntax::parse(source, library).map_err(malformed)?;
        let checked = check(source, &tree, globals, library).map_err(malformed)?;
        let wrong = literals::check(source, &tree, &checked);
        if !wrong.is_empty() {
            return Err(malformed(wrong));
        }
        if !checked.types[tree.root.index()].as_ref().is_some_and(|ty| ty.is(wanted)) {
            return Err(Unsound::OtherType);
        }
        Ok(Self { tree, checked })
    }

    pub(super) fn plan(&self) -> Result<Plan, String> {
        Plan::new(&self.tree, &self.checked)
    }

    /// Whether it makes a message of protocol buffers.
    pub(super) fn makes_message(&self) -> bool {
        self.tree.iter().any(|(_, expr)| matches!(expr, Expr::Message(_)))
    }

    /// Whether any name that counts is `oldSelf`, be it that of a loop's variable.
    pub(super) fn names_old(&self) -> bool {
        let is_old =
            |expr: &Expr| matches!(expr, Expr::Ident(name) if matches!(&**name, "oldSelf" | ".oldSelf"));
        self.tree.iter().any(|(id, expr)| self.checked.types[id.index()].is_some() && is_old(expr))
    }
}
