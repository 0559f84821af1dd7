//! Settings of tests that environment variables give.

use std::env;
use std::str::FromStr;

use anyhow::{Context, Result};

/// The number that a variable gives.
///
/// # Errors
/// It is no number.
pub fn number<T: FromStr>(name: &str) -> Result<Option<T>> {
    let Ok(text) = env::var(name) else { return Ok(None) };
    Ok(Some(text.parse().ok().with_context(|| format!("{name} is a number, not {text:?}"))?))
}
