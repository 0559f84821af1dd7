//! Bytes in base64, as Go's `encoding/base64` decodes them.
//! Padding is required: no decoder of an API server does without.
//!
//! Source: Go 1.26 `encoding/base64/base64.go`.

/// Which 64 characters stand for the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `StdEncoding`: with `+` and `/`.
    Standard,
    /// `URLEncoding`: with `-` and `_`.
    Url,
}

/// `DecodeString`: line ends are skipped, and padding is needed. `None` if Go returns an error.
pub fn decode(text: &[u8], alphabet: Alphabet) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let groups = symbols.len() / 4;
    let mut bytes = Vec::with_capacity(groups * 3);
    for (index, group) in symbols.chunks_exact(4).enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < groups) {
            return None;
        }
        let mut bits: u32 = 0;
        for symbol in &group[..4 - padding] {
            bits = bits << 6 | u32::from(sextet(*symbol, alphabet)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

fn sextet(symbol: u8, alphabet: Alphabet) -> Option<u8> {
    Some(match (symbol, alphabet) {
        (b'A'..=b'Z', _) => symbol - b'A',
        (b'a'..=b'z', _) => symbol - b'a' + 26,
        (b'0'..=b'9', _) => symbol - b'0' + 52,
        (b'+', Alphabet::Standard) | (b'-', Alphabet::Url) => 62,
        (b'/', Alphabet::Standard) | (b'_', Alphabet::Url) => 63,
        _ => return None,
    })
}
