//! Formats of addresses: IP, CIDR, MAC.

use std::net::Ipv6Addr;

/// `ipv4`: an address with dots. Leading zeros pass, and so does an IPv6 address that ends in an IPv4 one:
/// the server reads both as Go did before 1.17.
pub(super) fn ipv4(text: &str) -> bool {
    let is_v6 = text.find([':', '.']).is_some_and(|first| text[first..].starts_with(':'));
    text.contains('.') && if is_v6 { lax_v6(text) } else { lax_v4(text) }
}

/// `ipv6`: without a zone and, unlike `ipv4`, without surplus zeros.
pub(super) fn ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<Ipv6Addr>().is_ok()
}

/// `cidr`: with leading zeros, and host bits, as one likes.
pub(super) fn cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let bits = if lax_v4(address) {
        32
    } else if lax_v6(address) {
        128
    } else {
        return false;
    };
    decimal(length).is_some_and(|length| length <= bits)
}

/// `mac`: 6, 8 or 20 bytes, in pairs with colons or hyphens, in fours with dots, or without any separator.
pub(super) fn mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (group, separator) = match (bytes[2], bytes[4]) {
        (separator @ (b':' | b'-'), _) => (2, Some(separator)),
        (_, b'.') => (4, Some(b'.')),
        _ => (2, None),
    };
    let hexadecimal = |part: &[u8]| part.len() == group && part.iter().all(u8::is_ascii_hexdigit);
    let groups = match separator {
        None => bytes.chunks(group).all(hexadecimal).then(|| bytes.len().div_ceil(group)),
        Some(separator) => {
            let mut parts = bytes.split(|byte| *byte == separator);
            parts.all(hexadecimal).then(|| (bytes.len() + 1) / (group + 1))
        }
    };
    groups.is_some_and(|groups| matches!(groups * group / 2, 6 | 8 | 20))
}

fn lax_v4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| decimal(part).is_some_and(|number| number <= 0xFF))
}

/// Groups of hexadecimal digits; `::` stands for at least one group of zeros, an IPv4 address at the end for
/// two.
fn lax_v6(text: &str) -> bool {
    match text.split_once("::") {
        None => groups(text, true) == Some(8),
        Some((head, tail)) => {
            let head = if head.is_empty() { Some(0) } else { groups(head, false) };
            let tail = if tail.is_empty() { Some(0) } else { groups(tail, true) };
            head.zip(tail).is_some_and(|(head, tail)| head + tail < 8)
        }
    }
}

fn groups(text: &str, at_end: bool) -> Option<usize> {
    let (hexadecimal, v4) = match text.rsplit_once(':') {
        Some((rest, last)) if last.contains('.') => (Some(rest), Some(last)),
        None if text.contains('.') => (None, Some(text)),
        _ => (Some(text), None),
    };
    if v4.is_some_and(|v4| !at_end || !lax_v4(v4)) {
        return None;
    }
    let mut count = if v4.is_some() { 2 } else { 0 };
    for group in hexadecimal.into_iter().flat_map(|text| text.split(':')) {
        let digits = group.trim_start_matches('0');
        if group.is_empty() || digits.len() > 4 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// A number of any digits, as far as it could matter.
fn decimal(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches('0');
    if text.is_empty() || digits.len() > 6 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(digits.bytes().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}
