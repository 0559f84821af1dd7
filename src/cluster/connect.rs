//! Finds an API server and the credentials for it, as kubectl does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use secrecy::ExposeSecret as _;

use super::credentials::{INVALID_TOKEN, of_client, of_kubeconfig};
use super::kubeconfig::{Unread, read, usual};
use super::multiplex::client;
use super::proxy::{Proxy, ProxyError, take_proxy};
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
    /// A kubeconfig that was found where it usually is, and cannot be used.
    #[error("cannot use the kubeconfig: {0}")]
    Usual(String),
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
    /// A proxy that cannot be used.
    #[error("cannot use the proxy: {0}")]
    Proxy(String),
    /// Credentials or certificates that cannot be used.
    #[error("cannot use the credentials: {0}")]
    Client(String),
}

impl Cluster {
    /// Connects as `kubectl` would: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod. Reads
    /// are sent again where client-go does; an operator takes [`Self::without_retries`].
    ///
    /// # Errors
    /// See [`ConnectError`]. No request is sent, so an unreachable server is not an error yet.
    pub async fn connect(target: &Target) -> Result<Self, ConnectError> {
        let Target { context, kubeconfig } = target;
        let found = match (kubeconfig, context) {
            (Some(path), _) => {
                let failed =
                    |error| ConnectError::Kubeconfig { path: path.clone(), reason: of_kubeconfig(&error) };
                let kubeconfig = read(path).map_err(failed)?;
                of(kubeconfig, context.as_ref()).await.map_err(failed)?
            }
            (None, Some(context)) => of_usual(Some(context)).await.map_err(|unread| {
                let failed = |reason| ConnectError::Context { context: context.clone(), reason };
                unread.into_error(failed)
            })?,
            (None, None) => {
                let mut found = or_of_pod(of_usual(None).await, || Config::incluster().ok())?;
                found.config.apply_debug_overrides();
                found
            }
        };
        Self::reached(found).map(Self::retrying_reads)
    }

    /// Connects with a configuration that the caller already has.
    ///
    /// # Errors
    /// [`ConnectError::Client`], [`ConnectError::Proxy`] and [`ConnectError::Server`].
    pub fn with_config(config: Config) -> Result<Self, ConnectError> {
        let named = config.proxy_url.as_ref().map(Uri::to_string);
        Self::reached(Found { config, proxy: named.map_or(ProxyChoice::None, ProxyChoice::Named) })
    }

    fn reached(Found { mut config, proxy }: Found) -> Result<Self, ConnectError> {
        // The client assumes that requests can be sent there, and panics if they cannot.
        if config.cluster_url.scheme().is_none() || config.cluster_url.host().is_none_or(str::is_empty) {
            return Err(ConnectError::Server);
        }
        // The client assumes the same of a token.
        let token = config.auth_info.token.as_ref().map(|token| format!("Bearer {}", token.expose_secret()));
        if token.is_some_and(|token| HeaderValue::try_from(token).is_err()) {
            return Err(ConnectError::Client(INVALID_TOKEN.to_owned()));
        }
        config.connect_timeout = Some(Duration::from_secs(10));
        let server = Server::at(&config.cluster_url.to_string());
        let proxy = proxy.of(&config.cluster_url).map_err(|error| ConnectError::Proxy(error.to_string()))?;
        let client = client(config, proxy).map_err(|error| ConnectError::Client(of_client(&error)))?;
        Ok(Self { server, ..Self::new(client, Arc::default()) })
    }
}

/// A configuration, and which proxy it has.
struct Found {
    config: Config,
    proxy: ProxyChoice,
}

/// Which proxy a server is reached through.
enum ProxyChoice {
    Named(String),
    Environment,
    None,
}

impl ProxyChoice {
    fn of(&self, server: &Uri) -> Result<Option<Proxy>, ProxyError> {
        match self {
            Self::Named(url) => Proxy::named(url, server).map(Some),
            Self::Environment => Proxy::of_environment(server),
            Self::None => Ok(None),
        }
    }
}

/// The configuration for a context of a kubeconfig, or for its current one.
async fn of(mut kubeconfig: Kubeconfig, context: Option<&String>) -> Result<Found, KubeconfigError> {
    let proxy = take_proxy(&mut kubeconfig, context);
    let options = KubeConfigOptions { context: context.cloned(), ..Default::default() };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    if let Some(reported) = config.auth_info.exec.as_mut().and_then(|plugin| plugin.cluster.as_mut()) {
        reported.proxy_url = proxy.clone();
    }
    Ok(Found { config, proxy: proxy.map_or(ProxyChoice::Environment, ProxyChoice::Named) })
}

/// The same of the files that are read where none is named.
async fn of_usual(context: Option<&String>) -> Result<Found, Unread> {
    of(usual()?, context).await.map_err(|error| Unread { path: None, error })
}

/// What the usual files name, or the cluster of the pod where they name none. A kubeconfig that cannot be
/// used must not lead to another cluster.
fn or_of_pod(
    usual: Result<Found, Unread>,
    pod: impl FnOnce() -> Option<Config>,
) -> Result<Found, ConnectError> {
    usual.or_else(|unread| {
        if !unread.names_no_cluster() {
            return Err(unread.into_error(ConnectError::Usual));
        }
        let config = pod().ok_or_else(|| unread.into_error(ConnectError::Infer))?;
        Ok(Found { config, proxy: ProxyChoice::None })
    })
}

impl Unread {
    /// The error for a file that is no kubeconfig, or another one with the reason. The file is named where
    /// the reason is a place in it.
    fn into_error(self, other: impl FnOnce(String) -> ConnectError) -> ConnectError {
        let reason = of_kubeconfig(&self.error);
        match (self.path, self.error) {
            (Some(path), KubeconfigError::Parse(_)) => ConnectError::Kubeconfig { path, reason },
            _ => other(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(text: &str) -> Kubeconfig {
        Kubeconfig::from_yaml(text).expect("a kubeconfig")
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_does_not_lead_to_the_cluster_of_the_pod() {
        let other = || Some(Config::new(Uri::from_static("https://pod")));
        let found = async |text: &str| {
            let usual = of(kubeconfig(text), None).await.map_err(|error| Unread { path: None, error });
            or_of_pod(usual, other).map(|found| found.config.cluster_url.to_string())
        };
        let cluster = |fields: &str| {
            format!(
                "{{current-context: a, clusters: [{{name: a, cluster: {{{fields}}}}}], \
                 contexts: [{{name: a, context: {{cluster: a}}}}]}}"
            )
        };
        assert_eq!(found(&cluster("server: 'https://named'")).await.expect("it is named"), "https://named/");
        assert_eq!(found("kind: Config").await.expect("none is named"), "https://pod/");
        for (text, reason) in [
            (cluster("server: 'https://named', certificate-authority: /a"), "certificate-authority: "),
            (cluster("tls-server-name: a"), "the cluster has no server"),
            ("current-context: a".to_owned(), "there is no context \"a\""),
        ] {
            let error = found(&text).await.expect_err(&text).to_string();
            assert!(error.starts_with(&format!("cannot use the kubeconfig: {reason}")), "{error}");
        }
    }

    #[tokio::test]
    async fn a_plugin_is_told_the_proxy_of_the_kubeconfig() {
        let reported = async |proxy: &str| {
            let text = format!(
                "{{current-context: a, clusters: [{{name: a, cluster: {{server: 'https://a'{proxy}}}}}], \
                 contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
                 users: [{{name: a, user: {{exec: {{command: a, provideClusterInfo: true}}}}}}]}}"
            );
            let found = of(kubeconfig(&text), None).await.expect("a configuration");
            let exec = found.config.auth_info.exec.expect("a plugin");
            exec.cluster.expect("the cluster").proxy_url
        };
        assert_eq!(reported(", proxy-url: 'http://p:3128'").await.as_deref(), Some("http://p:3128"));
        assert_eq!(reported("").await, None);
    }
}
