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
