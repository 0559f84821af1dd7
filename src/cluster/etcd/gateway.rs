//! A running etcd, through the JSON gateway that it serves beside gRPC on its client port.
//! It only reads, a page at a time.

use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::ByteString;
use kube::Config;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Endpoint, RawValue};
use crate::cluster::PAGE_SIZE;
use crate::cluster::credentials::{authentication, of_client, of_kubeconfig};

/// How long a page may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long the first request may take, which asks for one key. A handshake that etcd ends late can leave a
/// request on a closed connection without an error: a user with the wrong certificate should not wait as long
/// as a page may take.
const CHECK_DEADLINE: Duration = Duration::from_secs(20);
/// How many times a page is asked for in smaller parts, where it is too large for one answer.
const HALVINGS: u32 = 9;

/// Which etcd is meant.
#[derive(Clone, Debug, Default)]
pub struct EtcdTarget {
    /// Asked in this order until one answers. Those without a scheme are reached over TLS where a file is
    /// named below.
    pub endpoints: Vec<Endpoint>,
    /// The certificate authority in PEM; the system's where there is none.
    pub cacert: Option<PathBuf>,
    /// The client's certificate in PEM.
    pub cert: Option<PathBuf>,
    /// The client's key in PEM.
    pub key: Option<PathBuf>,
}

/// A connection to the members of one etcd.
pub struct Etcd {
    members: Vec<(String, kube::Client)>,
}

/// A part of what is under a prefix, as it was at one revision.
#[derive(Debug, Default)]
pub struct EtcdPage {
    /// Keys and values, in the order of the keys.
    pub values: Vec<RawValue>,
    /// Where the next page begins; none after the last.
    pub next: Option<After>,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    key: Vec<u8>,
    revision: String,
}

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

type Unusable = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize)]
struct RangeRequest {
    key: ByteString,
    range_end: ByteString,
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

#[derive(Deserialize)]
struct RangeResponse {
    header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct Header {
    /// The gateway writes 64-bit numbers as strings.
    revision: String,
}

#[derive(Deserialize)]
struct KeyValue {
    key: ByteString,
    /// Absent when empty.
    #[serde(default)]
    value: ByteString,
    mod_revision: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: String,
}

impl Etcd {
    /// Prepares connections to all endpoints. Nothing is sent yet.
    ///
    /// # Errors
    /// [`EtcdError::Target`] only.
    pub async fn connect(target: &EtcdTarget) -> Result<Self, EtcdError> {
        let mut members = Vec::new();
        let tls = [&target.cacert, &target.cert, &target.key].into_iter().any(Option::is_some);
        for endpoint in &target.endpoints {
            let endpoint = &endpoint.url(tls);
            let refused = |cause: String| EtcdError::Target { endpoint: endpoint.clone(), cause };
            let config = config(endpoint, target).await.map_err(refused)?;
            let client = kube::Client::try_from(config).map_err(|error| refused(of_client(&error)))?;
            members.push((endpoint.clone(), client));
        }
        Ok(Self { members })
    }

    /// Reads a page of what is under a prefix: the first, or the one that begins where the page before ended.
    /// All pages show the same revision.
    ///
    /// # Errors
    /// See [`EtcdError`].
    pub async fn page(&self, prefix: &str, after: Option<&After>) -> Result<EtcdPage, EtcdError> {
        let mut limit = PAGE_SIZE;
        let mut halvings = 0;
        loop {
            match self.page_of(prefix, after, limit, DEADLINE).await {
                // gRPC ends an answer that is too large with "resource exhausted".
                Err(EtcdError::Refused { code: 429, .. }) if halvings < HALVINGS => {
                    halvings += 1;
                    limit = (limit / 2).max(1);
                }
                page => return page,
            }
        }
    }

    /// Asks for one key under a prefix, so that what is wrong with the access to etcd is reported once, and
    /// first.
    ///
    /// # Errors
    /// See [`EtcdError`]; there has to be a key.
    pub async fn check(&self, prefix: &str) -> Result<(), EtcdError> {
        match self.page_of(prefix, None, 1, CHECK_DEADLINE).await?.values.is_empty() {
            true => Err(EtcdError::Empty(prefix.to_owned())),
            false => Ok(()),
        }
    }

    /// Reads the value of one key; `None` if it is absent.
    ///
    /// # Errors
    /// See [`EtcdError`].
    pub async fn value(&self, key: &str) -> Result<Option<RawValue>, EtcdError> {
        let page = self.page_of(key, None, 1, DEADLINE).await?;
        Ok(page.values.into_iter().find(|value| value.key == key))
    }

    async fn page_of(
        &self,
        prefix: &str,
        after: Option<&After>,
        limit: u32,
        deadline: Duration,
    ) -> Result<EtcdPage, EtcdError> {
        let key = after.map_or_else(|| prefix.as_bytes().to_vec(), |after| after.key.clone());
        let request = RangeRequest {
            key: ByteString(key),
            range_end: ByteString(end_of_prefix(prefix)),
            limit: limit.to_string(),
            revision: after.map(|after| after.revision.clone()),
        };
        let body = serde_json::to_vec(&request).expect("texts and bytes have a JSON form");
        let (endpoint, answer) = self.ask(body, deadline).await?;
        let answer: RangeResponse =
            serde_json::from_slice(&answer).map_err(|_| EtcdError::Malformed(endpoint.to_owned()))?;
        let revision = after.map_or(answer.header.revision, |after| after.revision.clone());
        let next = answer.kvs.last().filter(|_| answer.more).map(|last| {
            let mut key = last.key.0.clone();
            key.push(0);
            After { key, revision }
        });
        let values = answer.kvs.into_iter().map(|KeyValue { key, value, mod_revision }| RawValue {
            key: String::from_utf8_lossy(&key.0).into_owned(),
            bytes: value.0,
            revision: mod_revision.parse().unwrap_or_default(),
        });
        Ok(EtcdPage { values: values.collect(), next })
    }

    /// Asks one member after the other until one answers.
    async fn ask(&self, body: Vec<u8>, limit: Duration) -> Result<(&str, Vec<u8>), EtcdError> {
        let mut last = EtcdError::Malformed("etcd".to_owned());
        for (endpoint, client) in &self.members {
            match tokio::time::timeout(limit, range(endpoint, client, body.clone())).await {
                Ok(Ok(answer)) => return Ok((endpoint, answer)),
                Ok(Err(error @ EtcdError::Connection { .. })) => last = error,
                Ok(Err(error)) => return Err(error),
                Err(_) => last = EtcdError::TimedOut { endpoint: endpoint.clone(), limit },
            }
        }
        Err(last)
    }
}

async fn range(endpoint: &str, client: &kube::Client, body: Vec<u8>) -> Result<Vec<u8>, EtcdError> {
    let broken =
        |error: Unusable| EtcdError::Connection { endpoint: endpoint.to_owned(), cause: lowest(&*error) };
    let request = Request::post("/v3/kv/range")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .expect("method, path and header make a request");
    let response = client.send(request).await.map_err(|error| broken(error.into()))?;
    let code = response.status().as_u16();
    let answer = response.into_body().collect().await.map_err(|error| broken(error.into()))?.to_bytes();
    if code == 200 {
        return Ok(answer.to_vec());
    }
    let failure: Failure = serde_json::from_slice(&answer).unwrap_or_default();
    Err(match failure.message.contains("has been compacted") {
        true => EtcdError::Compacted,
        false => EtcdError::Refused { endpoint: endpoint.to_owned(), code },
    })
}

/// The root cause of an error.
fn lowest(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(reason) = authentication(error) {
        return reason.to_owned();
    }
    let last = std::iter::successors(Some(error), |error| error.source()).last();
    last.unwrap_or(error).to_string()
}

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

/// The client is that of API servers, so the target has the form of a kubeconfig.
async fn config(endpoint: &str, target: &EtcdTarget) -> Result<Config, String> {
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{
            "name": "etcd",
            "cluster": { "server": endpoint, "certificate-authority": target.cacert },
        }],
        "users": [{
            "name": "etcd",
            "user": { "client-certificate": target.cert, "client-key": target.key },
        }],
        "contexts": [{ "name": "etcd", "context": { "cluster": "etcd", "user": "etcd" } }],
        "current-context": "etcd",
    }))
    .map_err(|_| "the endpoint or a file's path is not text in UTF-8".to_owned())?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| of_kubeconfig(&error))?;
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = None;
    Ok(config)
}

/// The first key after all those that begin with `prefix`, which is not empty and ends in ASCII. The key that
/// is the prefix comes before the others.
fn end_of_prefix(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_wrong_is_told_with_what_happened() {
        let told = |endpoint: &str, cause: &str| {
            EtcdError::Connection { endpoint: endpoint.to_owned(), cause: cause.to_owned() }.to_string()
        };
        for (endpoint, cause, hint) in [
            ("https://e:1", "invalid peer certificate: UnknownIssuer", "--etcd-cacert"),
            ("https://e:1", "received fatal alert: CertificateRequired", "--etcd-cert and"),
            ("https://e:1", "Connection reset by peer", "--etcd-cert and"),
            ("http://e:1", "connection closed before message completed", "it may require https"),
        ] {
            let told = told(endpoint, cause);
            assert!(told.contains(endpoint) && told.contains(cause) && told.contains(hint), "{told}");
        }
        let refused = told("https://e:1", "tcp connect error: Connection refused (os error 111)");
        assert!(refused.ends_with("(os error 111)"), "{refused}");
        let silent =
            EtcdError::TimedOut { endpoint: "https://e:1".to_owned(), limit: CHECK_DEADLINE }.to_string();
        assert!(silent.contains("within 20 s; it may require another client certificate"), "{silent}");
    }
}
