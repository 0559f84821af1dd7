//! URLs as Go's `net/url` reads them.
//! What a browser repairs, as the WHATWG's standard has it, is an error here.
//!
//! Source: Go 1.26 `net/url/url.go`.

use super::netip::parse_addr;
use super::strconv::quote;
use std::collections::BTreeMap;
use std::fmt;

/// More parameters than that, and a query has none.
const MAX_PARAMETERS: usize = 10_000;

/// A URL in its parts. What was percent-encoded is decoded in them, so they are bytes.
#[derive(Clone, Debug, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    /// Name and, if there is one, password.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The path as it was written, where that is not how it would be written.
    raw_path: String,
    raw_query: String,
    force_query: bool,
    omit_host: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
}

/// The part of a URL that a character stands in, which decides what need not be percent-encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    User,
    Query,
    Fragment,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Url {
    /// `url.ParseRequestURI`: absolute, or a path from the root; a number sign has no meaning.
    ///
    /// # Errors
    /// Those of Go, in its words, which quote the text.
    pub fn parse_request_uri(text: &str) -> Result<Self, String> {
        Self::read(text, true).map_err(|why| refused(text, &why))
    }

    /// `url.Parse`: perhaps relative, perhaps with a fragment.
    ///
    /// # Errors
    /// Those of Go, in its words, which quote the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::read(rest, false).map_err(|why| refused(rest, &why))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|why| refused(text, &why))?;
            if escape(&url.fragment, Part::Fragment) != fragment {
                url.raw_fragment = fragment.to_owned();
            }
        }
        Ok(url)
    }

    fn read(text: &str, request: bool) -> Result<Self, String> {
        if text.bytes().any(|b| b < b' ' || b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(text)?;
        url.scheme = scheme.to_lowercase();
        match rest.strip_suffix('?') {
            Some(before) if !before.contains('?') => {
                url.force_query = true;
                rest = before;
            }
            _ => {
                let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
                url.raw_query = query.to_owned();
                rest = before;
            }
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().unwrap_or_default().contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let with_authority = !url.scheme.is_empty() || (!request && !rest.starts_with("///"));
        match rest.strip_prefix("//") {
            Some(after) if with_authority => {
                let end = after.find('/').unwrap_or(after.len());
                url.set_authority(&after[..end])?;
                rest = &after[end..];
            }
            _ => url.omit_host = !url.scheme.is_empty() && rest.starts_with('/'),
        }
        url.path = unescape(rest, Part::Path)?;
        if escape(&url.path, Part::Path) != rest {
            url.raw_path = rest.to_owned();
        }
        Ok(url)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(&self.scheme, host)?;
        if let Some(user) = user {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(allowed) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            self.user = Some(match user.split_once(':') {
                Some((name, password)) => {
                    (unescape(name, Part::User)?, Some(unescape(password, Part::User)?))
                }
                None => (unescape(user, Part::User)?, None),
            });
        }
        Ok(())
    }

    /// `EscapedPath`
    pub fn escaped_path(&self) -> String {
        if !self.raw_path.is_empty() && is_encoded(&self.raw_path, Part::Path) {
            return self.raw_path.clone();
        }
        if self.path == b"*" { "*".to_owned() } else { escape(&self.path, Part::Path) }
    }

    fn escaped_fragment(&self) -> String {
        if !self.raw_fragment.is_empty() && is_encoded(&self.raw_fragment, Part::Fragment) {
            return self.raw_fragment.clone();
        }
        escape(&self.fragment, Part::Fragment)
    }

    /// The host without brackets, and the port without its colon.
    fn host_and_port(&self) -> (&[u8], &[u8]) {
        let host = &self.host[..];
        let (name, port) = match host.iter().rposition(|b| *b == b':') {
            Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => {
                (&host[..colon], &host[colon + 1..])
            }
            _ => (host, &host[..0]),
        };
        let bare = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
        (bare.unwrap_or(name), port)
    }

    /// `Query`: the values of each parameter, in order. Malformed parameters are left out.
    pub fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if self.raw_query.split('&').count() > MAX_PARAMETERS {
            return query;
        }
        for part in self.raw_query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) {
                query.entry(lossy(&key)).or_default().push(lossy(&value));
            }
        }
        query
    }

    /// Whether it names a user.
    pub fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Whether it has a fragment that is not empty.
    pub fn has_fragment(&self) -> bool {
        !self.fragment.is_empty()
    }

    /// Whether it has a query that is not empty.
    pub fn has_query(&self) -> bool {
        !self.raw_query.is_empty()
    }

    /// The scheme, in small letters; empty where there is none.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// `Host`: with its port.
    pub fn host(&self) -> String {
        lossy(&self.host)
    }

    /// `Hostname()`: without port and brackets.
    pub fn hostname(&self) -> String {
        lossy(self.host_and_port().0)
    }

    /// `Port()`: empty where there is none.
    pub fn port(&self) -> String {
        lossy(self.host_and_port().1)
    }

    fn write_hierarchy(&self, text: &mut String) {
        let has_authority = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
        let left_out = self.omit_host && self.host.is_empty() && self.user.is_none();
        if has_authority && !left_out {
            if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                text.push_str("//");
            }
            if let Some((name, password)) = &self.user {
                text.push_str(&escape(name, Part::User));
                if let Some(password) = password {
                    text.push(':');
                    text.push_str(&escape(password, Part::User));
                }
                text.push('@');
            }
            text.push_str(&escape(&self.host, Part::Host));
        }
        let path = self.escaped_path();
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            text.push('/');
        }
        if text.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
            text.push_str("./");
        }
        text.push_str(&path);
    }
}

/// `String`: the URL as Go writes it.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme);
            text.push(':');
        }
        if self.opaque.is_empty() {
            self.write_hierarchy(&mut text);
        } else {
            text.push_str(&self.opaque);
        }
        if self.force_query || !self.raw_query.is_empty() {
            text.push('?');
            text.push_str(&self.raw_query);
        }
        if !self.fragment.is_empty() {
            text.push('#');
            text.push_str(&self.escaped_fragment());
        }
        f.write_str(&text)
    }
}

/// Go's error about a text that is not a URL.
fn refused(text: &str, why: &str) -> String {
    format!("parse {}: {why}", quote(text))
}

/// The scheme and the rest; no scheme where there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    const NO_LITERAL: &str = "invalid IP-literal";
    let misplaced = |port: &str| format!("invalid port {} after host", quote(port));
    match host.rfind('[') {
        Some(0) => {
            let close = host.rfind(']').ok_or("missing ']' in host")?;
            let (name, port) = (&host[1..close], &host[close + 1..]);
            if !is_optional_port(port) {
                return Err(misplaced(port));
            }
            let decoded = match name.find("%25") {
                Some(zone) => {
                    let mut decoded = unescape(&name[..zone], Part::Host)?;
                    decoded.extend(unescape(&name[zone..], Part::Zone)?);
                    decoded
                }
                None => unescape(name, Part::Host)?,
            };
            let address = parse_addr(&lossy(&decoded)).map_err(|error| format!("invalid host: {error}"))?;
            if address.ip.is_ipv4() {
                return Err(NO_LITERAL.to_owned());
            }
            let port = unescape(port, Part::Host)?;
            Ok([&b"["[..], &decoded, b"]", &port].concat())
        }
        Some(_) => Err(NO_LITERAL.to_owned()),
        None => {
            // Only of http the first colon begins the port; other schemes have had hosts with colons.
            let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
            if let Some(port) = colon.map(|colon| &host[colon..]).filter(|port| !is_optional_port(port)) {
                return Err(misplaced(port));
            }
            unescape(host, Part::Host)
        }
    }
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a byte may stand in a part as it is.
fn is_plain(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
        return true;
    }
    let others: &[u8] = match part {
        Part::Path => b"$&+,/:;=@",
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"",
        Part::User => b"$&+,;=",
        Part::Query => b"",
        Part::Fragment => b"$&+,/:;=?@!()*",
    };
    others.contains(&byte)
}

/// Whether an encoding that was written is a fair one of what it stands for.
fn is_encoded(text: &str, part: Part) -> bool {
    text.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || is_plain(byte, part))
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if is_plain(*byte, part) {
            escaped.push(char::from(*byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let escape_at = |at: usize| {
        let end = bytes.len().min(at + 3);
        format!("invalid URL escape {}", quote(&lossy(&bytes[at..end])))
    };
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = text
                    .get(at + 1..at + 3)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                    .ok_or_else(|| escape_at(at))?;
                let value = u8::from_str_radix(digits, 16).map_err(|_| escape_at(at))?;
                match part {
                    Part::Host if value < 0x80 && digits != "25" => return Err(escape_at(at)),
                    Part::Zone if digits != "25" && value != b' ' && !is_plain(value, Part::Host) => {
                        return Err(escape_at(at));
                    }
                    _ => decoded.push(value),
                }
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => decoded.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone) && *byte < 0x80 && !is_plain(*byte, part) => {
                return Err(format!("invalid character {} in host name", quote(&lossy(&[*byte]))));
            }
            byte => decoded.push(*byte),
        }
        at += 1;
    }
    Ok(decoded)
}
