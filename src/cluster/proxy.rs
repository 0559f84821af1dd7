//! Through which proxy a server is reached, as client-go decides it: that of the kubeconfig, or that of the
//! environment.

use std::env;
use std::fmt;
use std::net::IpAddr;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::config::Kubeconfig;

/// What kube reads in a kubeconfig as the proxy of each server. Where there is none it takes `HTTPS_PROXY`,
/// also for servers that `NO_PROXY` names.
pub(super) const UNREAD: &str = "http://unread.invalid";

/// A proxy.
#[derive(Clone)]
pub(super) struct Proxy {
    at: Intercept,
    /// Where its URL is set.
    source: &'static str,
}

/// A URL that names no proxy that Etch can use. It may hold a password, and is not shown.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not the URL of an HTTP, HTTPS or SOCKS5 proxy, such as http://proxy.example.com:3128")]
pub(super) struct ProxyError(&'static str);

/// How a proxy is spoken to.
pub(super) enum Protocol {
    Http,
    Https,
    Socks5,
}

impl Proxy {
    /// The proxy of a kubeconfig, which `NO_PROXY` does not concern.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub(super) fn named(url: &str, server: &Uri) -> Result<Self, ProxyError> {
        Self::at(url, "proxy-url", server, "").and_then(|proxy| proxy.ok_or(ProxyError("proxy-url")))
    }

    /// The proxy of the environment for a server; `None` if there is none for it.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub(super) fn of_environment(server: &Uri) -> Result<Option<Self>, ProxyError> {
        Self::of_variables(server, |name| env::var(name).ok())
    }

    fn of_variables(
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        let names = match server.scheme_str() {
            Some("https") => ["HTTPS_PROXY", "https_proxy"],
            _ => ["HTTP_PROXY", "http_proxy"],
        };
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, variable(name).filter(|value| !value.is_empty())?)))
        };
        if server.host().is_none_or(is_loopback) {
            return Ok(None);
        }
        let Some((name, url)) = first(names) else { return Ok(None) };
        let excluded = first(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
        Self::at(&url, name, server, &excluded)
    }

    fn at(url: &str, source: &'static str, server: &Uri, excluded: &str) -> Result<Option<Self>, ProxyError> {
        let all = Matcher::builder().all(url).build();
        let at = all.intercept(server).ok_or(ProxyError(source))?;
        if at.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks4")) {
            return Err(ProxyError(source));
        }
        let port = server.port_u16().or(match server.scheme_str() {
            Some("https") => Some(443),
            _ => Some(80),
        });
        // With a dot before it, a domain is not in itself.
        let is_other =
            |entry: &String| entry.strip_prefix('.').is_none_or(|domain| server.host() != Some(domain));
        let excluded: Vec<String> =
            excluded.split(',').map(|entry| without_port(entry.trim(), port)).filter(is_other).collect();
        let others = Matcher::builder().all(url).no(excluded.join(",")).build();
        Ok(others.intercept(server).map(|_| Self { at, source }))
    }

    /// Where it is.
    pub(super) fn uri(&self) -> &Uri {
        self.at.uri()
    }

    /// How it is spoken to.
    pub(super) fn protocol(&self) -> Protocol {
        match self.uri().scheme_str() {
            Some("http") => Protocol::Http,
            Some("https") => Protocol::Https,
            _ => Protocol::Socks5,
        }
    }

    /// The header by which an HTTP proxy knows the user.
    pub(super) fn header(&self) -> Option<&HeaderValue> {
        self.at.basic_auth()
    }

    /// The user and the password for a SOCKS proxy.
    pub(super) fn user(&self) -> Option<(&str, &str)> {
        self.at.raw_auth()
    }
}

/// Where it is and where that is set, without the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {} of {}", self.uri().to_string().trim_end_matches('/'), self.source)
    }
}

/// Takes out of a kubeconfig the proxy of a context, or of the current one, so that kube reads none.
pub(super) fn take_proxy(kubeconfig: &mut Kubeconfig, context: Option<&String>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_ref())?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == *name);
    let cluster = named.and_then(|named| Some(named.context.as_ref()?.cluster.clone()));
    let mut found = None;
    for named in &mut kubeconfig.clusters {
        let before = named.cluster.as_mut().and_then(|cluster| cluster.proxy_url.replace(UNREAD.to_owned()));
        // Of two clusters with the same name the first counts.
        if cluster.as_ref() == Some(&named.name) && found.is_none() {
            found = Some(before);
        }
    }
    found.flatten().filter(|url| !url.is_empty())
}

/// An entry of `NO_PROXY` in the form that has no port and no `*`, where it is about this port.
///
/// Source: golang.org/x/net `http/httpproxy/proxy.go`.
fn without_port(entry: &str, port: Option<u16>) -> String {
    let entry = entry.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(entry);
    match entry.rsplit_once(':') {
        Some((host, of)) if port.is_some_and(|port| of == port.to_string()) => {
            match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
                Some(host) => host.to_owned(),
                None if !host.contains(':') => host.to_owned(),
                None => entry.to_owned(),
            }
        }
        _ => entry.to_owned(),
    }
}

/// Whether a host is this machine: Go reaches it through no proxy of the environment.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(named, _)| *named == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = Proxy::of_variables(&server.parse().expect("a URL"), variable);
        found.map(|proxy| proxy.map(|proxy| proxy.to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_names_the_proxy_of_a_scheme_and_the_servers_that_need_none() {
        let of = |server: &str, excluded: &str| {
            let variables = [("HTTPS_PROXY", "http://u:hunter2@p:3128"), ("NO_PROXY", excluded)];
            proxy(server, &variables).expect("a proxy that can be used")
        };
        let through = Some("the proxy http://p:3128 of HTTPS_PROXY".to_owned());
        for excluded in ["", "example.org", "api.example.com:443", "10.0.0.0/8", "*.v1.api.example.com"] {
            assert_eq!(of("https://api.example.com:6443", excluded), through, "{excluded}");
        }
        for excluded in ["*", "a, example.com", ".example.com", "*.example.com", "api.example.com:6443"] {
            assert_eq!(of("https://api.example.com:6443", excluded), None, "{excluded}");
        }
        assert_eq!(of("https://example.com", ".example.com"), through);
        assert_eq!(of("https://example.com", "example.com"), None);
        for (server, excluded) in [
            ("https://10.1.2.3:6443", "10.0.0.0/8"),
            ("https://10.1.2.3", "10.1.2.3:443"),
            ("https://[fd00::1]:6443", "[fd00::1]:6443"),
            ("https://localhost:6443", ""),
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("http://api.example.com", ""),
        ] {
            assert_eq!(of(server, excluded), None, "{server}");
        }
        let lower = [("HTTPS_PROXY", ""), ("https_proxy", "p:3128")];
        let found = proxy("https://api", &lower).expect("a proxy that can be used");
        assert_eq!(found.as_deref(), Some("the proxy http://p:3128 of https_proxy"));
    }

    #[test]
    fn what_is_no_proxy_is_named_by_where_it_is_set_and_not_shown() {
        for url in ["ftp://hunter2", "socks4://hunter2:1", "http://", "hunter2 hunter2"] {
            let error = proxy("https://api", &[("HTTPS_PROXY", url)]).expect_err(url);
            assert!(error.starts_with("HTTPS_PROXY is not the URL") && !error.contains("hunter2"), "{error}");
            let error = Proxy::named(url, &Uri::from_static("https://api")).map(drop).expect_err(url);
            assert!(error.to_string().starts_with("proxy-url is not the URL"), "{error}");
        }
    }

    #[test]
    fn the_proxy_of_a_kubeconfig_is_that_of_the_context() {
        let text = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: \
            {server: s, proxy-url: 'http://a'}}, {name: b, cluster: {server: s}}], contexts: [{name: a, \
            context: {cluster: a}}, {name: b, context: {cluster: b}}]}";
        for (context, expected) in
            [(None, Some("http://a")), (Some("b"), None), (Some("a"), Some("http://a"))]
        {
            let mut kubeconfig = Kubeconfig::from_yaml(text).expect("a kubeconfig");
            let found = take_proxy(&mut kubeconfig, context.map(str::to_owned).as_ref());
            assert_eq!(found.as_deref(), expected);
            let mut left = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
            assert!(left.all(|cluster| cluster.proxy_url.as_deref() == Some(UNREAD)));
        }
    }
}
