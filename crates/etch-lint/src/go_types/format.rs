//! What the methods of well-known types read in a string.

use go_text::base64::{self, Alphabet};
use go_text::netip::{parse_addr, parse_prefix};
use go_text::time::{Time, parse_duration};

/// The form of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `time.ParseDuration`
    Duration,
    /// `resource.ParseQuantity`
    Quantity,
    /// RFC 3339, as `metav1.Time` and `time.Time` read it.
    Time,
    /// RFC 3339 with six decimals of a second.
    MicroTime,
    /// Base64
    Bytes,
    /// `net.ParseIP`, or an empty text.
    Ip,
    /// `netip.ParseAddr`, or an empty text.
    Addr,
    /// `netip.ParsePrefix`, or an empty text.
    Prefix,
}

impl Format {
    /// Whether a text has this form.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Self::Duration => parse_duration(text).is_some(),
            Self::Quantity => is_quantity(text.trim()),
            Self::Time => Time::parse_rfc3339(text).is_some(),
            Self::MicroTime => Time::parse_decimals(text, 6).is_some(),
            Self::Bytes => base64::decode(text.as_bytes(), Alphabet::Standard).is_some(),
            Self::Ip => text.is_empty() || parse_addr(text).is_ok_and(|addr| !addr.zoned),
            Self::Addr => text.is_empty() || parse_addr(text).is_ok(),
            Self::Prefix => text.is_empty() || parse_prefix(text).is_ok(),
        }
    }

    /// What it is, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duration => "a duration such as 1h30m",
            Self::Quantity => "a quantity such as 500m or 1Gi",
            Self::Time => "a time such as 2006-01-02T15:04:05Z",
            Self::MicroTime => "a time such as 2006-01-02T15:04:05.000000Z",
            Self::Bytes => "base64",
            Self::Ip | Self::Addr => "an IP address",
            Self::Prefix => "an IP prefix such as 10.0.0.0/8",
        }
    }
}

/// Source: apimachinery `pkg/api/resource/quantity.go` of Kubernetes 1.37.
fn is_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let digits = &number[..number.len() - suffix.len()];
    let is_number = digits.bytes().any(|byte| byte.is_ascii_digit()) && digits.matches('.').count() <= 1;
    let is_exponent = || {
        let exponent = suffix.strip_prefix(['e', 'E']);
        exponent.is_some_and(|exponent| exponent.parse::<i32>().is_ok())
    };
    is_number && (SUFFIXES.contains(&suffix) || is_exponent())
}
