//! Finds an API server and the credentials for it, as kubectl does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::ExposeSecret as _;

use super::credentials::{INVALID_TOKEN, of_client, of_kubeconfig};
use super::kubeconfig::{Unread, usual};
use super::multiplex::Clients;
use super::{Cluster, Server};

/// The cluster, as the user named it.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The kubeconfig context; the current one if none.
    pub context: Option<String>,
    /// The kubeconfig file; those of `KUBECONFIG`, or the usual one, if none.
    pub kubeconfig: Option<PathBuf>,
}

/// Why no cluster can be reached. No text or source of these errors quotes the content of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account.
    #[error("no cluster: {0}; set KUBECONFIG or --kubeconfig, or run inside a cluster")]
    Infer(String),
    /// A context that the kubeconfig does not have, or that is incomplete.
    #[error("cannot use the kubeconfig context {context:?}: {reason}")]
    Context {
        /// The context as it was named.
        context: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A kubeconfig file that was named and cannot be read.
    #[error("cannot use the kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// The file as it was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A server that is named without a scheme, or without a host.
    #[error("the cluster's server in the kubeconfig is not a URL such as https://127.0.0.1:6443")]
    Server,
    /// Credentials or certificates that cannot be used.
    #[error("cannot use the credentials: {0}")]
    Client(String),
}

impl Cluster {
    /// Connects as `kubectl` would: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod. Reads are
    /// sent again where client-go does; an operator takes [`Self::without_retries`].
    ///
    /// # Errors
    /// See [`ConnectError`]. No request is sent, so an unreachable server is not an error yet.
    pub async fn connect(target: &Target) -> Result<Self, ConnectError> {
        let Target { context, kubeconfig } = target;
        let config = match (kubeconfig, context) {
            (Some(path), _) => {
                let failed =
                    |error| ConnectError::Kubeconfig { path: path.clone(), reason: of_kubeconfig(&error) };
                let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
                of(kubeconfig, context.as_ref()).await.map_err(failed)?
            }
            (None, Some(context)) => of_usual(Some(context)).await.map_err(|unread| {
                let failed = |reason| ConnectError::Context { context: context.clone(), reason };
                unread.into_error(failed)
            })?,
            (None, None) => {
                let mut config = match of_usual(None).await {
                    Ok(config) => config,
                    Err(unread) => Config::incluster().map_err(|_| unread.into_error(ConnectError::Infer))?,
                };
                config.apply_debug_overrides();
                config
            }
        };
        Self::with_config(config).map(Self::retrying_reads)
    }

    /// Connects with a configuration that the caller already has.
    ///
    /// # Errors
    /// [`ConnectError::Client`] and [`ConnectError::Server`].
    pub fn with_config(mut config: Config) -> Result<Self, ConnectError> {
        // The client assumes that requests can be sent there, and panics if they cannot.
        if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none_or(str::is_empty) {
            return Err(ConnectError::Server);
        }
        // The client assumes the same of a token.
        let token = config.auth_info.token.as_ref().map(|token| format!("Bearer {}", token.expose_secret()));
        if token.is_some_and(|token| HeaderValue::try_from(token).is_err()) {
            return Err(ConnectError::Client(INVALID_TOKEN.to_owned()));
        }
        // kube's own retries hide 429 and 503 for minutes (fact K4); ours are counted, paced and reported.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        config.read_timeout = None;
        let server = Server::at(&config.cluster_url.to_string());
        let clients = Clients::connecting(config).map_err(|error| ConnectError::Client(of_client(&error)))?;
        Ok(Self { server, ..Self::through(clients, Arc::default()) })
    }
}

/// The configuration for a context of a kubeconfig, or for its current one.
async fn of(kubeconfig: Kubeconfig, context: Option<&String>) -> Result<Config, KubeconfigError> {
    let options = KubeConfigOptions { context: context.cloned(), ..Default::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await
}

/// The same of the files that are read where none is named.
async fn of_usual(context: Option<&String>) -> Result<Config, Unread> {
    of(usual()?, context).await.map_err(|error| Unread { path: None, error })
}

impl Unread {
    /// The error for a file that is no kubeconfig, or another one with the reason. The file is named where the
    /// reason is a place in it.
    fn into_error(self, other: impl FnOnce(String) -> ConnectError) -> ConnectError {
        let reason = of_kubeconfig(&self.error);
        match (self.path, self.error) {
            (Some(path), KubeconfigError::Parse(_)) => ConnectError::Kubeconfig { path, reason },
            _ => other(reason),
        }
    }
}
