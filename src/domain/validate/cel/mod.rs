//! `x-kubernetes-validations`: rules in CEL, compiled and run as the API server does.
//! It must not validate anything but rules, nor read a clock.
mod check;
mod compare;
mod cost;
mod data;
mod duration;
mod eval;
mod fault;
mod field_path;
mod library;
mod literals;
mod macros;
mod model;
mod names;
mod plan;
pub mod program;
mod rule;
mod syntax;
mod time;
mod types;
mod value;

pub use program::{BrokenRule, Program};
