//! Semantic versions.
//! It must not know the `v` that some write before them, unless asked to normalize.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go` and blang/semver v4.

use std::cmp::Ordering;

use crate::kind::{Kind, downcast};

/// A version, without the build metadata, which counts for nothing.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// Part of a prerelease: numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

impl Kind for Version {
    fn type_name(&self) -> &'static str {
        "kubernetes.Semver"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        Some(self.precedence(downcast(other)?).is_eq())
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
pub(crate) fn normalized(text: &str) -> Option<String> {
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
