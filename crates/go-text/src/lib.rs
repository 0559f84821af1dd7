//! The text formats of Go's standard library that an API server reads and answers with: one module for each
//! Go package.
//!
//! A port takes what Go takes, refuses what Go refuses, and says the same; the tests hold it against Go's own
//! answers.
//!
//! | module | Go package |
//! |---|---|
//! | [`base64`] | `encoding/base64` |
//! | [`fmt`] | `fmt`: `%v` of decoded JSON |
//! | [`json`] | `encoding/json`: `Marshal` of decoded JSON |
//! | [`mail`] | `net/mail`: `ParseAddress` |
//! | [`netip`] | `net/netip`: `ParseAddr`, `ParsePrefix` |
//! | [`number`] | the numbers of decoded JSON, and Go's conversions between them |
//! | [`pem`] | `encoding/pem`: `Decode` |
//! | [`regexp`] | `regexp` |
//! | [`strconv`] | `strconv`: `Quote`, `IsPrint`, `ParseFloat`, `%v` of floats |
//! | [`time`] | `time`: `Parse` of RFC 3339 and dates, `Format`, `ParseDuration` |
//! | [`url`] | `net/url` |

pub mod base64;
pub mod fmt;
pub mod json;
pub mod mail;
pub mod netip;
pub mod number;
pub mod pem;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod url;

#[cfg(test)]
mod tests;

/// Stack that must be left before another level is entered, and how much is added when it is not: 64 KiB and
/// 1 MiB.
const RED_ZONE: usize = 64 * 1024;
const STACK_STEP: usize = 1024 * 1024;

/// Runs one level of a recursion over a document or a schema, on a new piece of stack when this one is nearly
/// used up.
pub fn level<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, STACK_STEP, step)
}
