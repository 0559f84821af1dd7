#![doc = include_str!("../README.md")]
//!
//! # What this is
//! The text formats of Go's standard library that an API server reads and answers with: one module for each
//! Go package.

pub mod base64;
pub mod fmt;
mod hexadecimal;
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
