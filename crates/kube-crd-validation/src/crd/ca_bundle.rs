//! Certificates of a webhook's authority: whether there is one that can be read.
//! It must not judge them by date, name or signature: the server does not.
//!
//! Source: client-go `transport/transport.go`, `rootCertPool`; Go `encoding/pem`. Of a certificate only the outermost structure
//! is looked at here.

use kube_structural_schema::go::base64;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// Why a bundle cannot be used.
pub(super) fn problem(bundle: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(bundle);
    let mut blocks = blocks(&text).peekable();
    if blocks.peek().is_none() {
        return Some("unable to load root certificates: unable to parse bytes as PEM block");
    }
    for (kind, der) in blocks {
        if kind != "CERTIFICATE" {
            continue;
        }
        match is_sequence(&der) {
            true => return None,
            false => return Some("unable to load root certificates: failed to parse certificate"),
        }
    }
    Some("unable to load root certificates: no valid certificate authority data seen")
}

fn blocks(text: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    text.split(BEGIN).skip(1).filter_map(|block| {
        let (kind, rest) = block.split_once(DASHES)?;
        let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
        let body: String = body.split_ascii_whitespace().collect();
        Some((kind, base64::decode(body.as_bytes(), base64::Alphabet::Standard)?))
    })
}

/// Whether bytes are one sequence of ASN.1 in DER, and nothing else.
fn is_sequence(der: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = der else { return false };
    let (length, rest) = match length {
        length @ 0..=0x7F => (usize::from(*length), rest),
        count @ 0x81..=0x84 => {
            let count = usize::from(count & 0x7F);
            if rest.len() < count {
                return false;
            }
            let (digits, rest) = rest.split_at(count);
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return false,
    };
    length == rest.len() && length > 0
}
