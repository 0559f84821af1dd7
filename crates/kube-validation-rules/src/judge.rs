//! The API server's verdict on a rule when a CRD is written: whether it compiles, what it names, what it may
//! cost.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`, and the declarations that
//! `pkg/apis/apiextensions/validation/cel_validation.go` hands to it.

use kube_structural_schema::schema::{Rule, Schema};

use super::check::Globals;
use super::estimate::{self, Roots, Sizes};
use super::library::Library;
use super::model::Node;
use super::rule::{Expression, Unsound, globals};
use super::types::Type;

/// The release since which the server takes the names in metadata to be no longer than names can be.
const NAMES_ARE_BOUNDED: u32 = 37;

/// A schema as rules see it.
#[derive(Debug)]
pub struct Declared(Node);

/// A place in such a schema.
#[derive(Clone, Copy, Debug)]
pub struct Decl<'d>(&'d Node);

/// Which of a rule's expressions the server has stored already: those may call all functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// `rule`.
    pub rule: bool,
    /// `messageExpression`.
    pub message: bool,
}

/// The verdict on a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why it does not compile, in the server's words.
    pub error: Option<String>,
    /// Whether it names `oldSelf`.
    pub uses_old: bool,
    /// The most that one evaluation may cost; 0 where there is an error.
    pub max_cost: u64,
    /// The estimate for `messageExpression`, or why that does not compile; `None` if there is none, or the
    /// rule has an error.
    pub message: Option<Result<u64, String>>,
}

impl Declared {
    /// Declares a schema as a server with this minor version does; a resource root is the root of a CRD's
    /// schema or an embedded resource. `None` if the server has no declaration for it.
    pub fn of(schema: &Schema, is_resource_root: bool, server_minor: u32) -> Option<Self> {
        let mut node = Node::new(schema, is_resource_root);
        if server_minor < NAMES_ARE_BOUNDED {
            node.unbound_names();
        }
        node.declared.then_some(Self(node))
    }

    /// The place of the whole.
    pub fn root(&self) -> Decl<'_> {
        Decl(&self.0)
    }
}

impl<'d> Decl<'d> {
    /// The place of a property, if expressions can name it.
    pub fn property(self, name: &str) -> Option<Self> {
        self.0.property(name).map(Self)
    }

    /// The place of items, or of values under `additionalProperties`.
    pub fn element(self) -> Option<Self> {
        self.0.element().map(Self)
    }

    /// How many values of this place one request can hold at most.
    pub fn max_cardinality(self) -> u64 {
        self.0.extent.max_cardinality()
    }
}

/// Judges a rule of a place, as a server with this minor version does. A blank one is not judged; other code
/// reports that it is blank.
pub fn judge(rule: &Rule, at: Decl<'_>, known: Known, server_minor: u32) -> Judgement {
    let mut judgement = Judgement::default();
    if rule.rule.trim().is_empty() {
        return judgement;
    }
    let globals = globals(rule, at.0);
    let judge =
        |source: &str, wanted, known| judge_expression(source, &globals, wanted, at, (server_minor, known));
    match judge(&rule.rule, &Type::Bool, known.rule) {
        (names_old, Ok(cost)) => {
            judgement.uses_old = names_old;
            judgement.max_cost = cost;
        }
        (names_old, Err(failure)) => {
            judgement.uses_old = names_old;
            judgement.error = Some(match failure {
                Failure::Compilation(text) => format!("compilation failed: {text}"),
                Failure::Type => "cel expression must evaluate to a bool".to_owned(),
                Failure::Program(text) => format!("program instantiation failed: {text}"),
            });
            return judgement;
        }
    }
    if !rule.message_expression.is_empty() {
        let (_, result) = judge(&rule.message_expression, &Type::String, known.message);
        judgement.message = Some(result.map_err(|failure| match failure {
            Failure::Compilation(text) => format!("messageExpression compilation failed: {text}"),
            Failure::Type => "messageExpression must evaluate to a string".to_owned(),
            Failure::Program(text) => format!("messageExpression instantiation failed: {text}"),
        }));
    }
    judgement
}

enum Failure {
    Compilation(String),
    Type,
    Program(String),
}

/// Whether an expression names `oldSelf`, and what it may cost.
fn judge_expression<'m>(
    source: &str,
    globals: &Globals<'m>,
    wanted: &Type<'m>,
    at: Decl<'m>,
    (server_minor, known): (u32, bool),
) -> (bool, Result<u64, Failure>) {
    let expression = match Expression::new(source, globals, wanted, Library::of(server_minor, known)) {
        Ok(expression) => expression,
        Err(Unsound::Malformed(text)) => return (false, Err(Failure::Compilation(text))),
        Err(Unsound::OtherType) => return (false, Err(Failure::Type)),
    };
    let names_old = expression.names_old();
    // The cost is not known.
    if expression.makes_message() {
        return (names_old, Ok(0));
    }
    if let Err(text) = expression.plan() {
        return (names_old, Err(Failure::Program(text)));
    }
    (
        names_old,
        Ok(estimate::max_cost(
            &expression.tree,
            &expression.checked,
            Sizes { of: Roots::Place(at.0), assumed: None },
            server_minor,
        )),
    )
}
