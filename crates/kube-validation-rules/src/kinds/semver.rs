//! Semantic versions. A `v` before them is an error, unless the caller normalizes.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go` and blang/semver v4.

use std::cmp::Ordering;

use go_text::strconv::quote;

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
    /// Reads a version.
    ///
    /// # Errors
    /// It is none, in the words of the library, which quote parts of it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (parse_number(major, "major")?, parse_number(minor, "minor")?);
        let (rest, build) = cut(rest, '+');
        let (patch, prerelease) = cut(rest, '-');
        let patch = parse_number(patch, "patch")?;
        let prerelease = prerelease.map(|all| all.split('.').map(parse_identifier).collect());
        let prerelease = prerelease.transpose()?.unwrap_or_default();
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_identifier(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Self { numbers: [major, minor, patch], prerelease })
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

/// What is before a character, and what is behind it where it is there.
fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn parse_number(text: &str, which: &str) -> Result<u64, String> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {which} number {}", quote(text)));
    }
    if has_leading_zero(text) {
        let which = match which {
            "major" => "Major",
            "minor" => "Minor",
            _ => "Patch",
        };
        return Err(format!("{which} number must not contain leading zeroes {}", quote(text)));
    }
    parse_digits(text)
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// Digits as a number, with the errors of Go's `strconv.ParseUint`.
fn parse_digits(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn parse_identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if has_leading_zero(text) {
            let text = quote(text);
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {text}"));
        }
        return parse_digits(text).map(Identifier::Number);
    }
    if !is_identifier(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
    }
    Ok(Identifier::Word(text.to_owned()))
}

/// Without a leading `v` and leading zeros, and with three numbers.
///
/// # Errors
/// It is too short for what stands behind the numbers, in the server's words.
pub(crate) fn normalized(text: &str) -> Result<String, String> {
    let mut parts: Vec<String> =
        text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(unpadded).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
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
