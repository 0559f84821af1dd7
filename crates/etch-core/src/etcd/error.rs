//! What can go wrong between Etch and a running etcd, and what may help.

use std::time::Duration;

use serde::Deserialize;

/// Why etcd cannot be read. Its answers are not shown: they may contain stored values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// An endpoint, a certificate or a key that cannot be used.
    #[error("cannot use the etcd endpoint {endpoint} with these certificates: {cause}")]
    Target {
        /// The endpoint.
        endpoint: String,
        /// What is wrong, and with which file.
        cause: String,
    },
    /// No member answers.
    #[error("etcd at {endpoint} does not answer: {cause}{}", advice(endpoint, cause))]
    Connection {
        /// The last endpoint that was asked.
        endpoint: String,
        /// What happened, in the words of the lowest layer: those above repeat it.
        cause: String,
    },
    /// It did not answer in time.
    #[error("etcd at {endpoint} did not answer within {} s{}", limit.as_secs(), advice(endpoint, ""))]
    TimedOut {
        /// The endpoint.
        endpoint: String,
        /// How long it had.
        limit: Duration,
    },
    /// An answer that is not success.
    #[error("etcd at {endpoint} answered {code}{}", hint(endpoint, *code))]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The HTTP status.
        code: u16,
    },
    /// It has authentication enabled. Its JSON gateway knows no user by a certificate.
    #[error(
        "etcd at {0} requires a user, and its JSON gateway takes none from a client certificate; read a \
         snapshot instead, see --etcd-snapshot"
    )]
    Authentication(String),
    /// The revision of the first page is gone: etcd was compacted meanwhile.
    #[error("etcd was compacted during the read; run the command again")]
    Compacted,
    /// It has no keys of an API server.
    #[error("etcd has no keys under {0}; set --etcd-prefix to the prefix of the API server's keys")]
    Empty(String),
    /// An answer that does not come from etcd.
    #[error("{0} does not answer as etcd does")]
    Malformed(String),
}

impl EtcdError {
    /// The error that an answer stands for that is not success, by its HTTP status and by etcd's own words.
    pub fn refused(endpoint: &str, code: u16, answer: &[u8]) -> Self {
        let Failure { message } = serde_json::from_slice(answer).unwrap_or_default();
        if message.contains("has been compacted") {
            return Self::Compacted;
        }
        match OF_AUTHENTICATION.contains(&&*message) {
            true => Self::Authentication(endpoint.to_owned()),
            false => Self::Refused { endpoint: endpoint.to_owned(), code },
        }
    }

    /// Whether another member may answer: this one is not there, or has no leader.
    pub fn is_of_member(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::TimedOut { .. }) || self.is_of_leader()
    }

    /// Whether it passes by itself, as while the members elect a leader.
    pub fn is_of_leader(&self) -> bool {
        matches!(self, Self::Refused { code: 500 | 503 | 504, .. })
    }

    /// Whether the answer is too large for one message of gRPC.
    pub fn is_of_size(&self) -> bool {
        matches!(self, Self::Refused { code: 429, .. })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: String,
}

/// What etcd answers to a client without a user token if authentication is enabled.
///
/// Source: etcd `api/v3rpc/rpctypes/error.go`.
const OF_AUTHENTICATION: [&str; 5] = [
    "etcdserver: user name is empty",
    "etcdserver: user name not found",
    "etcdserver: invalid auth token",
    "etcdserver: permission denied",
    "etcdserver: authentication failed, invalid user ID or password",
];

/// What may be wrong where there is no answer.
fn advice(endpoint: &str, cause: &str) -> &'static str {
    let is_tls = endpoint.starts_with("https:");
    if cause.contains("invalid peer certificate") {
        "; set --etcd-cacert to the CA that signed its certificate"
    } else if ["refused", "timed out", "deadline", "dns", "unreachable"]
        .iter()
        .any(|word| cause.contains(word))
    {
        ""
    } else if is_tls {
        // etcd ends a handshake that it rejects either with an alert or without one.
        "; it may require another client certificate, see --etcd-cert and --etcd-key"
    } else {
        "; it may require https"
    }
}

/// What may be wrong where etcd answers with this status.
fn hint(endpoint: &str, code: u16) -> &'static str {
    match code {
        404 => ": it does not serve the JSON gateway, see etcd's --enable-grpc-gateway",
        401 | 403 => ": it requires another client certificate",
        400 if endpoint.starts_with("http:") => ": it may require https",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_wrong_is_told_with_what_happened() {
        let reported = |endpoint: &str, cause: &str| {
            EtcdError::Connection { endpoint: endpoint.to_owned(), cause: cause.to_owned() }.to_string()
        };
        for (endpoint, cause, hint) in [
            ("https://e:1", "invalid peer certificate: UnknownIssuer", "--etcd-cacert"),
            ("https://e:1", "received fatal alert: CertificateRequired", "--etcd-cert and"),
            ("https://e:1", "Connection reset by peer", "--etcd-cert and"),
            ("http://e:1", "connection closed before message completed", "it may require https"),
        ] {
            let reported = reported(endpoint, cause);
            assert!(
                reported.contains(endpoint) && reported.contains(cause) && reported.contains(hint),
                "{reported}"
            );
        }
        let refused = reported("https://e:1", "tcp connect error: Connection refused (os error 111)");
        assert!(refused.ends_with("(os error 111)"), "{refused}");
        let silent =
            EtcdError::TimedOut { endpoint: "https://e:1".to_owned(), limit: Duration::from_secs(20) }
                .to_string();
        assert!(silent.contains("within 20 s; it may require another client certificate"), "{silent}");
    }

    #[test]
    fn etcds_own_words_decide_what_is_wrong() {
        let refused = |message: &str| {
            let answer = serde_json::json!({ "message": message }).to_string();
            EtcdError::refused("https://e:1", 400, answer.as_bytes())
        };
        for message in OF_AUTHENTICATION {
            let reported = refused(message).to_string();
            assert!(reported.contains("--etcd-snapshot") && !reported.contains("--etcd-cert"), "{reported}");
        }
        let compacted = refused("etcdserver: mvcc: required revision has been compacted");
        assert!(matches!(compacted, EtcdError::Compacted));
        let reported = refused("user name is empty, said hunter2").to_string();
        assert_eq!(reported, "etcd at https://e:1 answered 400");
    }
}
