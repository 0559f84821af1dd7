//! Semantic versions.
//! It must not know the `v` that some write before them, unless asked to normalize.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go` and blang/semver v4.

use std::cmp::Ordering;

use super::{Table, text};
use crate::fault::{Fault, Outcome};
use crate::value::Value;

/// A version, without the build metadata, which counts for nothing.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// Part of a prerelease: numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

pub(super) fn declare(table: &mut Table) {
    table.function("semver", "string_to_semver", "string -> semver", |args| version_of(args, false));
    table.function("semver", "string_bool_to_semver", "string, bool -> semver", |args| {
        version_of(args, matches!(args[1], Value::Bool(true)))
    });
    table.function("isSemver", "is_semver_string", "string -> bool", |args| {
        Ok(Value::Bool(Version::parse(text(args, 0)?).is_some()))
    });
    table.function("isSemver", "is_semver_string_bool", "string, bool -> bool", |args| {
        Ok(Value::Bool(version_of(args, matches!(args[1], Value::Bool(true))).is_ok()))
    });
    table.method("isGreaterThan", "semver_is_greater_than", "semver, semver -> bool", |args| {
        Ok(Value::Bool(precedence(args)?.is_gt()))
    });
    table.method("isLessThan", "semver_is_less_than", "semver, semver -> bool", |args| {
        Ok(Value::Bool(precedence(args)?.is_lt()))
    });
    table.method("compareTo", "semver_compare_to", "semver, semver -> int", |args| {
        Ok(Value::Int(precedence(args)? as i64))
    });
    table.method("major", "semver_major", "semver -> int", |args| number(args, 0));
    table.method("minor", "semver_minor", "semver -> int", |args| number(args, 1));
    table.method("patch", "semver_patch", "semver -> int", |args| number(args, 2));
}

fn version_of<'v>(args: &[Value<'v>], normalize: bool) -> Outcome<Value<'v>> {
    let text = text(args, 0)?;
    let version = if normalize {
        normalized(text).and_then(|text| Version::parse(&text))
    } else {
        Version::parse(text)
    };
    version.map(|version| Value::Version(version.into())).ok_or(Fault::new("not a semantic version"))
}

fn precedence(args: &[Value<'_>]) -> Outcome<Ordering> {
    match args {
        [Value::Version(a), Value::Version(b)] => Ok(a.precedence(b)),
        _ => Err(Fault::NoOverload),
    }
}

fn number<'v>(args: &[Value<'v>], index: usize) -> Outcome<Value<'v>> {
    match args {
        // A number beyond the integers wraps around upstream, too.
        [Value::Version(version)] => Ok(Value::Int(version.numbers[index] as i64)),
        _ => Err(Fault::NoOverload),
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let (major, minor) = (parse_number(parts.next()?)?, parse_number(parts.next()?)?);
        let (patch, build) = match parts.next()?.split_once('+') {
            Some((patch, build)) => (patch, Some(build)),
            None => (text.splitn(3, '.').nth(2)?, None),
        };
        if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
            return None;
        }
        let (patch, prerelease) = match patch.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (patch, None),
        };
        let prerelease = match prerelease {
            Some(prerelease) => prerelease.split('.').map(parse_identifier).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Some(Self { numbers: [major, minor, parse_number(patch)?], prerelease })
    }

    /// Which version comes first; a prerelease comes before its release.
    pub(crate) fn precedence(&self, other: &Self) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| self.prerelease.is_empty().cmp(&other.prerelease.is_empty()))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

fn parse_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && !(text.len() > 1 && text.starts_with('0'));
    digits.then(|| text.parse().ok()).flatten()
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn parse_identifier(text: &str) -> Option<Identifier> {
    if !is_identifier(text) {
        return None;
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_number(text).map(Identifier::Number);
    }
    Some(Identifier::Word(text.to_owned()))
}

/// Without a leading `v` and leading zeros, and with three numbers.
fn normalized(text: &str) -> Option<String> {
    let mut parts: Vec<String> =
        text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(unpadded).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    Some(parts.join("."))
}

fn unpadded(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let stripped = part.trim_start_matches('0');
    if stripped.starts_with(|c: char| c.is_ascii_digit()) {
        stripped.to_owned()
    } else {
        format!("0{stripped}")
    }
}
