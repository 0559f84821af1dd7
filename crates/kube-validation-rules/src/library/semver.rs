//! Semantic versions: `semver('1.2.3')` and their functions.
//! How they are written is in `kinds`.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go`.

use std::cmp::Ordering;

use super::args::{kind, text};
use super::table::Table;
use crate::fault::{Fault, Outcome};
use crate::kinds::{Version, normalized};
use crate::price::{ONE, PARSE};
use crate::value::Value;

pub(super) fn declare(table: &mut Table) {
    table.function("semver", "string_to_semver", "string -> semver", PARSE, |args| version_of(args, false));
    table.function("semver", "string_bool_to_semver", "string, bool -> semver", PARSE, |args| {
        version_of(args, matches!(args[1], Value::Bool(true)))
    });
    table.function("isSemver", "is_semver_string", "string -> bool", PARSE, |args| {
        Ok(Value::Bool(Version::parse(text(args, 0)?).is_ok()))
    });
    table.function("isSemver", "is_semver_string_bool", "string, bool -> bool", PARSE, |args| {
        Ok(Value::Bool(version_of(args, matches!(args[1], Value::Bool(true))).is_ok()))
    });
    table.method("isGreaterThan", "semver_is_greater_than", "semver, semver -> bool", ONE, |args| {
        Ok(Value::Bool(precedence(args)?.is_gt()))
    });
    table.method("isLessThan", "semver_is_less_than", "semver, semver -> bool", ONE, |args| {
        Ok(Value::Bool(precedence(args)?.is_lt()))
    });
    table.method("compareTo", "semver_compare_to", "semver, semver -> int", ONE, |args| {
        Ok(Value::Int(precedence(args)? as i64))
    });
    table.method("major", "semver_major", "semver -> int", ONE, |args| number(args, 0));
    table.method("minor", "semver_minor", "semver -> int", ONE, |args| number(args, 1));
    table.method("patch", "semver_patch", "semver -> int", ONE, |args| number(args, 2));
}

fn version_of<'v>(args: &[Value<'v>], normalize: bool) -> Outcome<Value<'v>> {
    let text = text(args, 0)?;
    let version = if normalize {
        normalized(text).and_then(|text| Version::parse(&text))
    } else {
        Version::parse(text)
    };
    version.map(Value::kind).map_err(|error| Fault::quoting("not a semantic version", error))
}

fn precedence(args: &[Value<'_>]) -> Outcome<Ordering> {
    Ok(kind::<Version>(args, 0)?.precedence(kind(args, 1)?))
}

fn number<'v>(args: &[Value<'v>], index: usize) -> Outcome<Value<'v>> {
    // A number beyond the integers wraps around upstream, too.
    Ok(Value::Int(kind::<Version>(args, 0)?.numbers[index] as i64))
}
