//! The format `uri`: what Go's `url.ParseRequestURI` takes, an absolute URI or an absolute path.
//! It must not normalize: nothing of the URI is kept.
//!
//! Source: Go 1.26 `net/url/url.go`.

use std::net::Ipv6Addr;

/// `uri`
pub(super) fn request(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        // A rootless path is opaque, and nothing in it is looked at.
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !is_authority(scheme, authority) {
                return false;
            }
            path
        }
        _ => rest,
    };
    unescape(path, Part::Other).is_some()
}

/// The scheme, empty where there is none, and the rest; nothing where the text begins with a colon.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let Some((user, host)) = authority.rsplit_once('@') else { return is_host(scheme, authority) };
    is_host(scheme, host)
        && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte))
        && match user.split_once(':') {
            None => unescape(user, Part::Other).is_some(),
            Some((name, password)) => {
                unescape(name, Part::Other).is_some() && unescape(password, Part::Other).is_some()
            }
        }
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else { return false };
            let port = &host[end + 1..];
            is_port(port) && is_ip_literal(&host[1..end])
        }
        Some(_) => false,
        None => {
            let colon = if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
                host.find(':')
            } else {
                // Lists of hosts with ports, as databases have them, pass but for http.
                host.rfind(':')
            };
            colon.is_none_or(|colon| is_port(&host[colon..])) && unescape(host, Part::Host).is_some()
        }
    }
}

/// An IPv6 address, with a zone behind `%25` or, unescaped, behind `%`.
fn is_ip_literal(literal: &str) -> bool {
    let (host, zone) = literal.split_at(literal.find("%25").unwrap_or(literal.len()));
    let Some(mut address) = unescape(host, Part::Host) else { return false };
    let Some(zone) = unescape(zone, Part::Zone) else { return false };
    address.extend(zone);
    if let Some(percent) = address.iter().position(|byte| *byte == b'%') {
        if percent + 1 == address.len() {
            return false;
        }
        address.truncate(percent);
    }
    std::str::from_utf8(&address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Which rules hold for `%` and for plain characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    Other,
}

fn unescape(text: &str, part: Part) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            if part != Part::Other && byte.is_ascii() && !is_host_byte(byte) {
                return None;
            }
            plain.push(byte);
            continue;
        }
        let digit =
            |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let value = digit(bytes.next())? << 4 | digit(bytes.next())?;
        let allowed = match part {
            Part::Host => value == b'%' || !value.is_ascii(),
            Part::Zone => matches!(value, b'%' | b' ') || is_host_byte(value),
            Part::Other => true,
        };
        if !allowed {
            return None;
        }
        plain.push(value);
    }
    Some(plain)
}

/// What stands in a host without an escape; beside letters and digits, all that Go lets through to later checks.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}
