//! IP addresses and prefixes as Go's `net/netip` reads them, with the words of its errors.
//! Rust's own parser accepts and refuses other texts.
//!
//! Source: Go 1.26 `net/netip/netip.go`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::strconv::quote;

/// An address, and whether a zone stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addr {
    /// The address; one of IPv4 that is written as one of IPv6 stays so.
    pub ip: IpAddr,
    /// Whether it names a zone.
    pub zoned: bool,
}

/// `netip.ParseAddr`
///
/// # Errors
/// It is none, in Go's words.
pub fn parse_addr(text: &str) -> Result<Addr, String> {
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            let [a, b, c, d] = four(text, text.as_bytes())?;
            Ok(Addr { ip: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), zoned: false })
        }
        Some(b':') => parse_v6(text),
        Some(_) => Err(refused(text, "missing IPv6 address", b"")),
        None => Err(refused(text, "unable to parse IP", b"")),
    }
}

/// `netip.ParsePrefix`: an address, and how many of its bits count.
///
/// # Errors
/// It is none, in Go's words.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let refused = |why: &str| format!("netip.ParsePrefix({}): {why}", quote(text));
    let Some((address, bits)) = text.rsplit_once('/') else { return Err(refused("no '/'")) };
    let Addr { ip, zoned } = parse_addr(address).map_err(|error| refused(&error))?;
    if zoned {
        return Err(refused("IPv6 zones cannot be present in a prefix"));
    }
    let bad = || refused(&format!("bad bits after slash: {}", quote(bits)));
    if bits.len() > 1 && !bits.starts_with(|first: char| matches!(first, '1'..='9')) {
        return Err(bad());
    }
    let count: i64 = if bits.bytes().all(|byte| byte.is_ascii_digit()) {
        bits.parse().map_err(|_| bad())?
    } else {
        return Err(bad());
    };
    let most = if ip.is_ipv4() { 32 } else { 128 };
    match u8::try_from(count) {
        Ok(count) if count <= most => Ok((ip, count)),
        _ => Err(refused("prefix length out of range")),
    }
}

fn refused(text: &str, why: &str, at: &[u8]) -> String {
    let text = quote(text);
    if at.is_empty() {
        return format!("ParseAddr({text}): {why}");
    }
    format!("ParseAddr({text}): {why} (at {})", quote(&String::from_utf8_lossy(at)))
}

/// The four fields of an IPv4 address, which is the end of `text`.
fn four(text: &str, part: &[u8]) -> Result<[u8; 4], String> {
    let refused = |why: &str, at: &[u8]| Err(refused(text, why, at));
    let mut fields = [0; 4];
    let (mut field, mut value, mut digits) = (0, 0_u16, 0);
    for (index, byte) in part.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return refused("IPv4 field has octet with leading zero", b"");
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                match u8::try_from(value) {
                    Ok(value) => fields[field] = value,
                    Err(_) => return refused("IPv4 field has value >255", b""),
                }
            }
            b'.' => {
                if index == 0 || index == part.len() - 1 || part[index - 1] == b'.' {
                    return refused("IPv4 field must have at least one digit", &part[index..]);
                }
                if field == 3 {
                    return refused("IPv4 address too long", b"");
                }
                (field, value, digits) = (field + 1, 0, 0);
            }
            _ => return refused("unexpected character", &part[index..]),
        }
    }
    if field < 3 {
        return refused("IPv4 address too short", b"");
    }
    Ok(fields)
}

fn parse_v6(text: &str) -> Result<Addr, String> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(refused(text, "zone must be a non-empty string", b"")),
        Some((address, zone)) => (address, zone),
        None => (text, ""),
    };
    let groups = groups(text, address.as_bytes())?;
    Ok(Addr { ip: IpAddr::V6(Ipv6Addr::from(groups)), zoned: !zone.is_empty() })
}

/// The sixteen bytes of an IPv6 address; `text` is all that was given, for the errors.
fn groups(text: &str, mut rest: &[u8]) -> Result<[u8; 16], String> {
    let refused = |why: &str, at: &[u8]| Err(refused(text, why, at));
    let mut bytes = [0; 16];
    let mut gap = None;
    let mut at = 0;
    if let Some(after) = rest.strip_prefix(b"::") {
        gap = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(bytes);
        }
    }
    while at < 16 {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > 4 {
            return refused("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return refused("each colon-separated field must have at least one digit", rest);
        }
        if rest.get(digits) == Some(&b'.') {
            if gap.is_none() && at != 12 {
                return refused("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if at + 4 > 16 {
                return refused(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    rest,
                );
            }
            bytes[at..at + 4].copy_from_slice(&four(text, rest)?);
            rest = b"";
            at += 4;
            break;
        }
        let group = rest[..digits].iter().fold(0_u16, |group, digit| group << 4 | hex(*digit));
        bytes[at..at + 2].copy_from_slice(&group.to_be_bytes());
        at += 2;
        rest = &rest[digits..];
        let Some(next) = rest.first() else { break };
        if *next != b':' {
            return refused("unexpected character, want colon", rest);
        }
        if rest.len() == 1 {
            return refused("colon must be followed by more characters", rest);
        }
        rest = &rest[1..];
        if rest.first() == Some(&b':') {
            if gap.is_some() {
                return refused("multiple :: in address", rest);
            }
            gap = Some(at);
            rest = &rest[1..];
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return refused("trailing garbage after address", rest);
    }
    match gap {
        None if at < 16 => refused("address string too short", b""),
        Some(_) if at == 16 => refused("the :: must expand to at least one field of zeros", b""),
        Some(gap) => {
            bytes.copy_within(gap..at, gap + 16 - at);
            bytes[gap..gap + 16 - at].fill(0);
            Ok(bytes)
        }
        None => Ok(bytes),
    }
}

fn hex(digit: u8) -> u16 {
    char::from(digit).to_digit(16).and_then(|value| u16::try_from(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_rust_reads_too() {
        for text in [
            "0.0.0.0",
            "255.1.2.3",
            "::",
            "::1",
            "1::",
            "2001:db8::8a2e:370:7334",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:7:8",
        ] {
            let read = parse_addr(text).expect(text);
            assert_eq!((read.ip, read.zoned), (text.parse().expect(text), false));
        }
        assert!(parse_addr("fe80::1%eth0").expect("an address").zoned);
    }

    #[test]
    fn errors_are_in_gos_words() {
        let cases = [
            ("", "ParseAddr(\"\"): unable to parse IP"),
            ("1.2.3", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
            ("1.2.3.400", "ParseAddr(\"1.2.3.400\"): IPv4 field has value >255"),
            ("1.2.3.04", "ParseAddr(\"1.2.3.04\"): IPv4 field has octet with leading zero"),
            ("1..3.4", "ParseAddr(\"1..3.4\"): IPv4 field must have at least one digit (at \".3.4\")"),
            ("1:2", "ParseAddr(\"1:2\"): address string too short"),
            ("::g", "ParseAddr(\"::g\"): each colon-separated field must have at least one digit (at \"g\")"),
            ("::1%", "ParseAddr(\"::1%\"): zone must be a non-empty string"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_addr(text), Err(expected.to_owned()));
        }
        assert_eq!(
            parse_prefix("10.0.0.0/33"),
            Err("netip.ParsePrefix(\"10.0.0.0/33\"): prefix length out of range".to_owned())
        );
        assert_eq!(parse_prefix("10.0.0.0/8"), Ok((IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8)));
    }
}
