//! One of the `x-kubernetes-validations`, compiled.
//! It must not know where in a schema it stands.
//!
//! Source: apiextensions-apiserver `schema/cel/compilation.go`.

use std::sync::Arc;

use kube_structural_schema::schema::{Rule, Schema};

use super::check::{Checked, Globals, check};
use super::field_path;
use super::literals;
use super::model::Node;
use super::plan::Plan;
use super::syntax;
use super::tree::{Expr, Tree};
use super::types::Type;

/// A rule, and what is to be evaluated for it.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    /// The rule's expression, or what is wrong with it; nothing where the rule is blank.
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
        let current = Type::of_node(node);
        let old =
            if compiled.is_optional() { Type::Optional(Arc::new(current.clone())) } else { current.clone() };
        let globals = Globals { current, old };
        match compile(&rule.rule, &globals, &Type::Bool) {
            Ok((plan, uses_old)) => {
                compiled.plan = Ok(Some(plan));
                compiled.uses_old = uses_old;
            }
            Err(error) => {
                compiled.plan = Err(error);
                return compiled;
            }
        }
        if !rule.message_expression.is_empty() {
            // Upstream gives up on the rest of the rule with an expression that is not sound, and runs the rule.
            let Ok((message, _)) = compile(&rule.message_expression, &globals, &Type::String) else {
                return compiled;
            };
            compiled.message = Some(message);
        }
        compiled.field_path = field_path::normalize(&rule.field_path, schema);
        compiled
    }

    /// `optionalOldSelf`
    pub(super) fn is_optional(&self) -> bool {
        self.rule.optional_old_self == Some(true)
    }

    /// The rule as its author would know it again.
    pub(super) fn name(&self) -> &str {
        let text = if self.rule.message.is_empty() { &self.rule.rule } else { &self.rule.message };
        text.trim()
    }
}

/// An expression of a type, and whether it names `oldSelf`.
fn compile(source: &str, globals: &Globals<'_>, wanted: &Type<'_>) -> Result<(Plan, bool), String> {
    let failed = |error| format!("compilation failed: {error}");
    let tree = syntax::parse(source).map_err(failed)?;
    let checked = check(&tree, globals).map_err(failed)?;
    let wrong = literals::check(&tree, &checked);
    if !wrong.is_empty() {
        return Err(failed(wrong.join("\n")));
    }
    if !checked.types[tree.root.index()].as_ref().is_some_and(|ty| ty.is(wanted)) {
        return Err(format!("cel expression must evaluate to a {wanted}"));
    }
    let plan =
        Plan::new(&tree, &checked).map_err(|error| format!("program instantiation failed: {error}"))?;
    Ok((plan, names_old(&tree, &checked)))
}

/// Whether any name that counts is `oldSelf`, be it that of a loop's variable.
fn names_old(tree: &Tree, checked: &Checked<'_>) -> bool {
    let is_old = |expr: &Expr| matches!(expr, Expr::Ident(name) if matches!(&**name, "oldSelf" | ".oldSelf"));
    tree.iter().any(|(id, expr)| checked.types[id.index()].is_some() && is_old(expr))
}
