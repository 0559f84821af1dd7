//! The evaluation of a request's expressions within one budget.

use serde_json::Value;

use super::compile::Compiled;
use super::scope::Scoped;
use kube_validation_rules::{EvaluationError, RUNTIME_BUDGET};

/// What the expressions of a request may still cost.
#[derive(Clone, Debug)]
pub(super) struct Run<'c> {
    compiled: &'c Compiled,
    pub(super) budget: i64,
}

/// Why an expression has no value.
#[derive(Debug)]
pub(super) enum Failure {
    Evaluation(EvaluationError),
    /// The expressions of the request cost more than they may together.
    OutOfBudget,
    /// A value that is to be merged is not an object.
    NoObject,
}

impl<'c> Run<'c> {
    pub(super) fn new(compiled: &'c Compiled) -> Self {
        Self { compiled, budget: RUNTIME_BUDGET }
    }

    /// Whether they have cost what they may: then none is evaluated any more.
    pub(super) fn is_spent(&self) -> bool {
        self.budget < 0
    }

    /// Has nothing evaluated any more.
    pub(super) fn exhaust(&mut self) {
        self.budget = -1;
    }

    pub(super) fn holds(&mut self, source: &Scoped, values: &[Option<&Value>]) -> Result<bool, Failure> {
        let variables = self.compiled.scopes[source.scope].variables();
        self.spend(|| source.expression.holds(variables, values))
    }

    pub(super) fn text(&mut self, source: &Scoped, values: &[Option<&Value>]) -> Result<String, Failure> {
        let variables = self.compiled.scopes[source.scope].variables();
        self.spend(|| source.expression.text(variables, values))
    }

    pub(super) fn value(
        &mut self,
        source: &Scoped,
        values: &[Option<&Value>],
    ) -> Result<Option<Value>, Failure> {
        let variables = self.compiled.scopes[source.scope].variables();
        self.spend(|| source.expression.value(variables, values))
    }

    fn spend<T>(
        &mut self,
        evaluate: impl FnOnce() -> (Result<T, EvaluationError>, u64),
    ) -> Result<T, Failure> {
        if self.is_spent() {
            return Err(Failure::OutOfBudget);
        }
        let (result, cost) = evaluate();
        self.budget = self.budget.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
        if self.is_spent() {
            return Err(Failure::OutOfBudget);
        }
        result.map_err(Failure::Evaluation)
    }
}

impl Failure {
    /// Whether it is because the expression alone costs too much.
    pub(super) fn is_too_expensive(&self) -> bool {
        matches!(self, Self::Evaluation(error) if error.is_too_expensive())
    }

    /// Whether it is because a value does not fit the schema.
    pub(super) fn is_misfit(&self) -> bool {
        matches!(self, Self::Evaluation(error) if error.is_misfit())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Evaluation(error) => error.fmt(f),
            Self::OutOfBudget => f.write_str("the expressions of the schema exceed the cost limit"),
            Self::NoObject => f.write_str("with where: Merge, its value must be an object"),
        }
    }
}
