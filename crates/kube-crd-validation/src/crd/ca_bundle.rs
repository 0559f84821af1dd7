//! Certificates of a webhook's authority: whether there is one that can be read.
//! Their date, name and signature do not count: the server does not check them.
//!
//! Source: client-go `transport/transport.go`, `rootCertPool`; Go `crypto/x509`. Of a certificate only the
//! outermost structure is looked at here, so one that is damaged inside is taken for sound.

use go_text::pem;

/// Why a bundle cannot be used. One readable certificate is enough.
pub(super) fn problem(bundle: &[u8]) -> Option<String> {
    let mut rest = bundle;
    let mut first = None;
    while !rest.is_empty() {
        let Some((block, after)) = pem::decode(rest) else {
            first = first.or(Some("unable to parse bytes as PEM block".to_owned()));
            break;
        };
        rest = after;
        if block.kind != b"CERTIFICATE" || block.has_headers {
            continue;
        }
        match certificate(&block.bytes) {
            Ok(()) => return None,
            Err(error) => first = first.or(Some(format!("failed to parse certificate: {error}"))),
        }
    }
    let why = first.unwrap_or_else(|| "no valid certificate authority data seen".to_owned());
    Some(format!("unable to load root certificates: {why}"))
}

/// Looks whether bytes are one sequence of ASN.1 in DER, and nothing else.
fn certificate(der: &[u8]) -> Result<(), &'static str> {
    const MALFORMED: &str = "x509: malformed certificate";
    let [0x30, length, rest @ ..] = der else { return Err(MALFORMED) };
    let (length, rest) = match length {
        length @ 0..=0x7F => (usize::from(*length), rest),
        count @ 0x81..=0x84 => {
            let count = usize::from(count & 0x7F);
            let (digits, rest) = rest.split_at_checked(count).ok_or(MALFORMED)?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            // The shortest form is the only one.
            if length < 0x80 || digits.first() == Some(&0) {
                return Err(MALFORMED);
            }
            (length, rest)
        }
        _ => return Err(MALFORMED),
    };
    match rest.len() {
        left if left < length => Err(MALFORMED),
        _ if length == 0 => Err("x509: malformed tbs certificate"),
        left if left > length => Err("x509: trailing data"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_in_the_servers_words() {
        let bundle = |kind: &str, der: &str| format!("-----BEGIN {kind}-----\n{der}\n-----END {kind}-----\n");
        let words = |bundle: &str| problem(bundle.as_bytes()).map(|words| words[34..].to_owned());
        let cases = [
            (bundle("CERTIFICATE", "MAMCAQE="), None),
            (
                bundle("CERTIFICATE", "MAMCAQ=="),
                Some("failed to parse certificate: x509: malformed certificate"),
            ),
            (bundle("CERTIFICATE", "MAMCAQEA"), Some("failed to parse certificate: x509: trailing data")),
            (bundle("X509 CRL", "MAMCAQE="), Some("no valid certificate authority data seen")),
            ("xyz".to_owned(), Some("unable to parse bytes as PEM block")),
            (format!("{}more", bundle("X509 CRL", "MAMCAQE=")), Some("unable to parse bytes as PEM block")),
            (format!("{}{}", bundle("CERTIFICATE", "MAMCAQ=="), bundle("CERTIFICATE", "MAMCAQE=")), None),
        ];
        for (bundle, expected) in cases {
            assert_eq!(words(&bundle).as_deref(), expected, "{bundle}");
        }
    }
}
