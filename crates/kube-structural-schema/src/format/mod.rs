//! The string formats that the API server knows, each a question about one text.
//!
//! The server takes whatever Go's parsers and a few regular expressions of `kube-openapi` take
//! (`mail.ParseAddress`, `url.ParseRequestURI`, `net.ParseMAC`, IP addresses with leading zeros), and no
//! crate draws the same lines.
//!
//! Source: kube-openapi `pkg/validation/strfmt` and apiextensions-apiserver
//! `pkg/apiserver/validation/formats.go`.

mod codes;
mod look;
mod names;
mod network;
mod time;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use look::{Look, look};
pub use time::{parse_date_time, parse_duration};

use go_text::mail::is_address;
use go_text::url::Url;

/// Returns whether a text is of a format.
pub type Check = fn(&str) -> bool;

/// The check of a string format; `None` if the server knows no such format and so checks nothing. Dashes in
/// the name do not count: `date-time` is `datetime`.
pub fn check(name: &str) -> Option<Check> {
    let normalized = if name.contains('-') { Cow::Owned(name.replace('-', "")) } else { Cow::Borrowed(name) };
    Some(match &*normalized {
        "bsonobjectid" => codes::object_id,
        "byte" => codes::base64,
        "cidr" => network::cidr,
        "creditcard" => codes::credit_card,
        "date" => time::date,
        "datetime" => time::date_time,
        "duration" => time::duration,
        "email" => is_address,
        "hexcolor" => codes::hex_color,
        "hostname" => names::hostname,
        "ipv4" => network::ipv4,
        "ipv6" => network::ipv6,
        "isbn" => codes::isbn,
        "isbn10" => codes::isbn10,
        "isbn13" => codes::isbn13,
        "k8slongname" => names::long,
        "k8sshortname" => names::short,
        "mac" => network::mac,
        "password" => |_| true,
        "rgbcolor" => codes::rgb_color,
        "ssn" => codes::ssn,
        "uri" => |text| Url::parse_request_uri(text).is_ok(),
        "uuid" => codes::uuid,
        "uuid3" => codes::uuid3,
        "uuid4" => codes::uuid4,
        "uuid5" => codes::uuid5,
        _ => return None,
    })
}
