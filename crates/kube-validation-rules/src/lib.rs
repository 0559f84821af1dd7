#![doc = include_str!("../README.md")]
//!
//! # What this is
//! `x-kubernetes-validations`: rules in CEL, compiled and run as the API server of Kubernetes 1.37 runs
//! stored rules. They run on what has passed the rest of validation.
//!
//! # What the `cel` crate does, and what is written here
//! The text of a rule is parsed by the `cel` crate, whose grammar is cel-go's. Everything after that is
//! written here, since no crate could be made to agree:
//!
//! | | `cel` 0.15 | `kube-cel` 0.8 (on `cel`), `cel-interpreter` 0.10 (its old name) |
//! |---|---|---|
//! | types of expressions | none: an unknown field or a wrong overload is found when it is reached, if ever | none |
//! | cost | none, so no budget | none |
//! | types from the schema | none | by converting the whole object; lists of type set and map stay lists |
//! | `==` of an object's lists, unknown fields, optionals, errors in `!=` | its own | its own |
//! | quantities, URLs, formats, regular expressions | none but `regex` | near ones: `url`, `f64`, `regex`'s syntax |
//!
//! # How a rule is evaluated
//! `syntax` parses and expands macros, `check` finds types and overloads, `literals` looks at constants,
//! `plan` lays out steps, `eval` runs them over `data`, which shows JSON through the `model` of its schema.
//! Steps, overloads and prices are those of cel-go 0.29, one for one: a rule costs exactly what the server
//! charges, and stops where it does on the server.
//!
//! # Where it is known to differ from the server
//! - Time zones by name (`getHours('Europe/Paris')`) are those of the database that is built in: the server's
//!   may be older or newer, and knows more of the time before 1970.
//! - Rules that make a message of protocol buffers (`google.protobuf.Duration{}`) are not judged: they cost
//!   nothing, and are taken to hold. In an [`Expression`] such a message does not compile. The authorizer's
//!   functions do not compile; on the server they do, on values of no type, and then fail.
//! - Maps are gone through in the order of their keys. The server's order is random, so where it decides (a
//!   `map()` over a map, which rule exceeds a budget) the server's own answer differs from time to time.
//! - `sort` and `sortBy` keep the order of equals; Go does not promise to.
//! - Quantities with an exponent beyond 50,000 are refused.
//! - Keys of a map literal must be `null`, a `bool`, a number or a `string`; the server takes some others.
//! - The results of `+` in one expression take at most 64 MiB together: lists, and what has no type, cost one
//!   on the server however large they are.
//! - An update of an object is not ratcheted: it is judged as if all of it were new, except for the rules
//!   that compare with `oldSelf`.
//! - An error of evaluation has the server's words, values among them, in a finding's `detail`. What
//!   [`Expression`] returns has none, and is less precise.
//!
//! # Expressions outside a schema
//! [`Expression`] is one expression over [`Variables`] that its author declares, typed by a schema or not,
//! and may give a value of any kind. It is the language of rules with two differences: literals of lists and
//! maps may mix types, and what no schema describes is `dyn`.

mod check;
mod compare;
mod cost;
mod data;
mod dispatch;
mod estimate;
mod eval;
mod expression;
mod extent;
mod fault;
mod field_path;
mod judge;
mod kind;
mod kinds;
mod library;
mod literals;
mod macros;
mod model;
mod names;
mod old_items;
mod own_rule;
mod path_tokens;
mod plan;
mod price;
mod problem;
mod program;
mod range;
mod rule;
mod select;
mod stop;
mod syntax;
#[cfg(test)]
mod tests;
mod time;
mod tree;
mod types;
mod value;
mod view;

pub use expression::{ASSUMED, EvaluationError, Expression, Variables, Wanted};
pub use judge::{Decl, Declared, Judgement, Known, judge};
pub use own_rule::{NamedField, OwnRule, Reading};
pub use path_tokens::{PathTokens, unquote};
pub use program::{BrokenRule, Program};
pub use stop::{is_stopped, until_stopped};

/// What the rules of one object may cost together, and so may the defaults of one schema.
///
/// Source: apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`.
pub const RUNTIME_BUDGET: i64 = 10_000_000;
