//! The root causes of errors of the client.

use std::error::Error;

use super::credentials::authentication;

/// What rustls finds where a server answers a TLS handshake with something else, such as HTTP.
const NO_TLS: &str = "received corrupt message of type InvalidContentType";

/// What rustls finds where a server uses a CA's certificate, which Go's clients accept where they trust that
/// CA.
const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The root cause of an error, in words that users know: `connection refused`.
///
/// The layers above name the place in the client where it happened, which does not help a user who looks for
/// the server.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    // Its own texts quote what a plugin has printed.
    if let Some(reason) = authentication(error) {
        return format!("no credentials: {reason}");
    }
    let mut bottom = error;
    while let Some(below) = bottom.source() {
        bottom = below;
    }
    let text = bottom.to_string();
    if text.ends_with(NO_TLS) {
        return "it does not answer in TLS: check whether its URL in the kubeconfig has to begin with http://"
            .to_owned();
    }
    if text.contains(CA_AS_SERVER) {
        return "the server presents the certificate of its CA as its own, which is not accepted: it needs \
            one that the CA has signed"
            .to_owned();
    }
    let text = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    // `Connection refused`, but not `UnknownIssuer` or `DNS`.
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second))
            if first.is_uppercase() && second.is_lowercase() && text.contains(' ') =>
        {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Layer(#[source] io::Error);

    #[test]
    fn a_server_without_tls_is_named() {
        let found = cause(&Layer(io::Error::other(NO_TLS)));
        assert!(found.contains("does not answer in TLS"), "{found}");
    }

    #[test]
    fn a_server_that_presents_its_ca_is_named() {
        let found =
            cause(&Layer(io::Error::other(format!("invalid peer certificate: Other({CA_AS_SERVER})"))));
        assert!(found.contains("certificate of its CA"), "{found}");
    }

    #[test]
    fn a_cause_is_named_in_words_that_people_know() {
        let refused = Layer(io::Error::from_raw_os_error(111));
        assert_eq!(cause(&refused), "connection refused");
        assert_eq!(
            cause(&Layer(io::Error::other("invalid peer certificate: UnknownIssuer"))),
            "invalid peer certificate: UnknownIssuer"
        );
        assert_eq!(cause(&Layer(io::Error::other("UnknownIssuer"))), "UnknownIssuer");
    }
}
