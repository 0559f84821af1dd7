//! Finds an API server and the credentials for it, as kubectl does.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::ExposeSecret as _;

use super::credentials::{INVALID_TOKEN, of_client, of_inference, of_kubeconfig};
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
    /// Connects as `kubectl` would: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    ///
    /// # Errors
    /// See [`ConnectError`]. No request is sent, so an unreachable server is not an error yet.
    pub async fn connect(target: &Target) -> Result<Self, ConnectError> {
        let Target { context, kubeconfig } = target;
        let options = KubeConfigOptions { context: context.clone(), ..Default::default() };
        let config = match (kubeconfig, context) {
            (Some(path), _) => {
                let failed =
                    |error| ConnectError::Kubeconfig { path: path.clone(), reason: of_kubeconfig(&error) };
                let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
            }
            (None, Some(context)) => Config::from_kubeconfig(&options).await.map_err(|error| {
                let reason = of_kubeconfig(&error);
                unparsable().unwrap_or_else(|| ConnectError::Context { context: context.clone(), reason })
            })?,
            (None, None) => Config::infer()
                .await
                .map_err(|error| unparsable().unwrap_or_else(|| ConnectError::Infer(of_inference(&error))))?,
        };
        Self::with_config(config)
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

/// The error for the first file of `KUBECONFIG`, or the usual one, that is no kubeconfig: that of the library,
/// which reads them all, names a place in it and not which file it is.
fn unparsable() -> Option<ConnectError> {
    let usual = || Some(vec![env::home_dir()?.join(".kube").join("config")]);
    let named = env::var_os("KUBECONFIG").filter(|files| !files.is_empty());
    let files = named.map(|files| env::split_paths(&files).collect()).or_else(usual)?;
    files.into_iter().find_map(|path| match Kubeconfig::read_from(&path) {
        Err(error @ KubeconfigError::Parse(_)) => {
            Some(ConnectError::Kubeconfig { path, reason: of_kubeconfig(&error) })
        }
        _ => None,
    })
}
