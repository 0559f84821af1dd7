//! Finding an API server and the credentials for it, the way kubectl does.
//! It must not send a request.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::multiplex::Clients;
use super::{Cluster, Server};

/// Which cluster is meant, as the user named it.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The kubeconfig context; the current one if none.
    pub context: Option<String>,
    /// The kubeconfig file; those of `KUBECONFIG`, or the usual one, if none.
    pub kubeconfig: Option<PathBuf>,
}

/// Why no cluster can be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account.
    #[error("no cluster: {}; set KUBECONFIG or --kubeconfig, or run inside a cluster", kubeconfig(.0))]
    Infer(Box<kube::config::InferConfigError>),
    /// A context that the kubeconfig does not have, or that is incomplete.
    #[error("cannot use the kubeconfig context {context:?}: {source}")]
    Context {
        /// The context as it was named.
        context: String,
        /// What is wrong with it.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// A kubeconfig file that was named and cannot be read.
    #[error("cannot use the kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// The file as it was named.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// A server that is named without a scheme, or without a host.
    #[error("the kubeconfig names the server {server:?}, which is not a URL such as https://127.0.0.1:6443")]
    Server {
        /// The server as it was named.
        server: String,
    },
    /// Credentials or certificates that cannot be used.
    #[error("cannot use the credentials: {0}")]
    Client(#[source] Box<kube::Error>),
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
                let failed = |error| ConnectError::Kubeconfig { path: path.clone(), source: Box::new(error) };
                let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
            }
            (None, Some(context)) => Config::from_kubeconfig(&options).await.map_err(|error| {
                ConnectError::Context { context: context.clone(), source: Box::new(error) }
            })?,
            (None, None) => Config::infer().await.map_err(|error| ConnectError::Infer(Box::new(error)))?,
        };
        Self::with_config(config)
    }

    /// Connects with a configuration that is already at hand.
    ///
    /// # Errors
    /// [`ConnectError::Client`] and [`ConnectError::Server`].
    pub fn with_config(mut config: Config) -> Result<Self, ConnectError> {
        // The client takes for granted that requests can be sent there, and panics where they cannot.
        if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none_or(str::is_empty) {
            return Err(ConnectError::Server { server: config.cluster_url.to_string() });
        }
        // kube's own retries hide 429 and 503 for minutes (fact K4); ours are counted, paced and reported.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        config.read_timeout = None;
        let server = Server::at(&config.cluster_url.to_string());
        let clients = Clients::connecting(config).map_err(|error| ConnectError::Client(Box::new(error)))?;
        Ok(Self { server, ..Self::through(clients, Arc::default()) })
    }
}

/// Why there is no kubeconfig: outside a cluster, that is what its user meant.
fn kubeconfig(error: &kube::config::InferConfigError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
