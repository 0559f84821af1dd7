//! A running etcd, through the JSON gateway that it serves beside gRPC on its client port.
//! It only reads, a page at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Config;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::cluster::Backoff;
use crate::cluster::credentials::{authentication, of_client, of_kubeconfig};
use crate::cluster::multiplex::client;
use crate::cluster::page_budget::PageBudget;
use crate::cluster::proxy::{Proxy, UNREAD};
use etch_core::etcd::{After, Endpoint, EtcdError, EtcdPage, RawValue, range_of};

/// How long a page may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long the first request may take, which asks for one key. A handshake that etcd ends late can leave a
/// request on a closed connection without an error: a user with the wrong certificate should not wait as long
/// as a page may take.
const CHECK_DEADLINE: Duration = Duration::from_secs(20);
/// How many times all members are asked again while they have no leader: an election takes a second or two.
const REPEATS: u32 = 3;

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
    /// The member that answered last, which is asked first.
    answering: AtomicUsize,
    /// How large pages are asked for, by prefix: etcd itself has no limit, and holds each several times.
    page_budget: Arc<PageBudget<String>>,
}

type Unusable = Box<dyn std::error::Error + Send + Sync>;

/// How much is asked for, and how long it may take.
#[derive(Clone, Copy)]
struct Range {
    /// How many values.
    limit: u32,
    /// How many bytes of the answer are read.
    most: usize,
    deadline: Duration,
}

impl Range {
    /// One value, however large.
    fn of_one(deadline: Duration) -> Self {
        Self { limit: 1, most: usize::MAX, deadline }
    }
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
            let proxy =
                Proxy::of_environment(&config.cluster_url).map_err(|error| refused(error.to_string()))?;
            let client = client(config, proxy).map_err(|error| refused(of_client(&error)))?;
            members.push((endpoint.clone(), client));
        }
        Ok(Self::of(members))
    }

    fn of(members: Vec<(String, kube::Client)>) -> Self {
        Self { members, answering: AtomicUsize::default(), page_budget: Arc::default() }
    }

    /// Reads a page of what is under a prefix: the first, or the one that begins where the page before ended.
    /// All pages show the same revision, unless etcd was compacted meanwhile, as an API server has it done
    /// every five minutes: those that follow show a later one.
    ///
    /// # Errors
    /// See [`EtcdError`].
    pub async fn page(&self, prefix: &str, after: Option<&After>) -> Result<EtcdPage, EtcdError> {
        let mut after = after.cloned();
        loop {
            let mut reservation = self.page_budget.reserve(prefix.to_owned());
            let range = Range { limit: reservation.limit, most: reservation.most(), deadline: DEADLINE };
            match self.page_of(prefix, after.as_ref(), range).await {
                Ok(Some((page, bytes))) => {
                    reservation.set_actual_size(page.values.len(), bytes);
                    return Ok(page);
                }
                Ok(None) => reservation.set_too_large(),
                Err(error) if error.is_of_size() && range.limit > 1 => reservation.set_too_large(),
                Err(error) => match &mut after {
                    Some(After { revision, .. })
                        if matches!(error, EtcdError::Compacted) && revision.is_some() =>
                    {
                        *revision = None;
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    /// Asks for one key under a prefix, so that what is wrong with the access to etcd is reported once, and
    /// first.
    ///
    /// # Errors
    /// See [`EtcdError`]; there has to be a key.
    pub async fn check(&self, prefix: &str) -> Result<(), EtcdError> {
        let found = self.page_of(prefix, None, Range::of_one(CHECK_DEADLINE)).await?;
        match found.is_none_or(|(page, _)| page.values.is_empty()) {
            true => Err(EtcdError::Empty(prefix.to_owned())),
            false => Ok(()),
        }
    }

    /// Reads the value of one key; `None` if it is absent.
    ///
    /// # Errors
    /// See [`EtcdError`].
    pub async fn value(&self, key: &str) -> Result<Option<RawValue>, EtcdError> {
        let found = self.page_of(key, None, Range::of_one(DEADLINE)).await?;
        Ok(found.and_then(|(page, _)| page.values.into_iter().find(|value| value.key == key)))
    }

    /// A page, and how many bytes its answer has; `None` if it has more than are read.
    async fn page_of(
        &self,
        prefix: &str,
        after: Option<&After>,
        range: Range,
    ) -> Result<Option<(EtcdPage, usize)>, EtcdError> {
        let (endpoint, answer) = self.ask(range_of(prefix, after, range.limit), range).await?;
        let Some(answer) = answer else { return Ok(None) };
        let page = EtcdPage::read(&answer, after).ok_or_else(|| EtcdError::Malformed(endpoint.to_owned()))?;
        Ok(Some((page, answer.len())))
    }

    /// Asks all members, and once more where they have no leader now.
    async fn ask(&self, body: Vec<u8>, range: Range) -> Result<(&str, Option<Vec<u8>>), EtcdError> {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
        for _ in 0..REPEATS {
            match self.ask_each(&body, range).await {
                Err(error) if error.is_of_leader() => tokio::time::sleep(backoff.failed(None)).await,
                answer => return answer,
            }
        }
        self.ask_each(&body, range).await
    }

    /// Asks one member after the other until one answers, beginning with the one that did so last. Where none
    /// does, the error of one that is there counts more than that of one that is not.
    async fn ask_each(&self, body: &[u8], range: Range) -> Result<(&str, Option<Vec<u8>>), EtcdError> {
        let mut last = EtcdError::Malformed("etcd".to_owned());
        let first = self.answering.load(Ordering::Relaxed);
        for index in (first..self.members.len()).chain(0..first) {
            let (endpoint, client) = &self.members[index];
            let asked =
                tokio::time::timeout(range.deadline, ask(endpoint, client, body.to_vec(), range.most));
            let late = |_| EtcdError::TimedOut { endpoint: endpoint.clone(), limit: range.deadline };
            match asked.await.map_err(late).flatten() {
                Ok(answer) => {
                    self.answering.store(index, Ordering::Relaxed);
                    return Ok((endpoint, answer));
                }
                Err(error) if !error.is_of_member() => return Err(error),
                Err(error) if error.is_of_leader() || !last.is_of_leader() => last = error,
                Err(_) => {}
            }
        }
        Err(last)
    }
}

/// Asks one member; `None` if its answer has more than `most` bytes: then the rest is not read.
async fn ask(
    endpoint: &str,
    client: &kube::Client,
    body: Vec<u8>,
    most: usize,
) -> Result<Option<Vec<u8>>, EtcdError> {
    let broken =
        |error: Unusable| EtcdError::Connection { endpoint: endpoint.to_owned(), cause: lowest(&*error) };
    let request = Request::post("/v3/kv/range")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .expect("method, path and header make a request");
    let response = client.send(request).await.map_err(|error| broken(error.into()))?;
    let code = response.status().as_u16();
    let answer = match Limited::new(response.into_body(), most).collect().await {
        Ok(answer) => answer.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(None),
        Err(error) => return Err(broken(error)),
    };
    if code == 200 {
        return Ok(Some(answer.to_vec()));
    }
    Err(EtcdError::refused(endpoint, code, &answer))
}

/// The root cause of an error.
fn lowest(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(reason) = authentication(error) {
        return reason.to_owned();
    }
    let last = std::iter::successors(Some(error), |error| error.source()).last();
    last.unwrap_or(error).to_string()
}

/// The client is that of API servers, so the target has the form of a kubeconfig.
async fn config(endpoint: &str, target: &EtcdTarget) -> Result<Config, String> {
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{
            "name": "etcd",
            "cluster": { "server": endpoint, "certificate-authority": target.cacert, "proxy-url": UNREAD },
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
    config.connect_timeout = Some(Duration::from_secs(5));
    Ok(config)
}

#[cfg(test)]
mod tests;
