//! The address of an etcd member, as etcdctl takes it: a URL, or a host and a port.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// The port on which etcd serves its clients.
const CLIENT_PORT: u16 = 2379;

/// One member of etcd: `https://127.0.0.1:2379`, `127.0.0.1:2379` or `localhost`.
///
/// `Display` writes it as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    scheme: Option<Scheme>,
    /// Host and port, the host in brackets where it is an IPv6 address.
    authority: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; an endpoint is written https://127.0.0.1:2379 or 127.0.0.1:2379")]
pub struct EndpointError(&'static str);

impl Endpoint {
    /// Its URL. If the endpoint has no scheme, the caller decides about TLS: etcdctl uses it if it has
    /// certificates.
    pub fn url(&self, tls: bool) -> String {
        let scheme = self.scheme.unwrap_or(if tls { Scheme::Https } else { Scheme::Http });
        format!("{}://{}", if scheme == Scheme::Https { "https" } else { "http" }, self.authority)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim();
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some(Scheme::Http), rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some(Scheme::Https), rest),
            Some(_) => return Err(EndpointError("etcd is reached over http or https only")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return Err(EndpointError("only a host and a port are expected"));
        }
        let (host, port) = host_and_port(rest)?;
        let authority = match (port, scheme) {
            (Some(port), _) => format!("{host}:{port}"),
            // A URL without a port has that of its scheme.
            (None, Some(_)) => host.to_owned(),
            (None, None) => format!("{host}:{CLIENT_PORT}"),
        };
        Ok(Self { text: text.to_owned(), scheme, authority })
    }
}

fn host_and_port(text: &str) -> Result<(&str, Option<u16>), EndpointError> {
    let (host, rest) = match text.find(']').filter(|_| text.starts_with('[')) {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_address = || {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok())
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host.is_empty() {
        return Err(EndpointError("the host is missing"));
    }
    if !host.bytes().all(is_name) && !is_address() {
        return Err(EndpointError("the host is neither a name nor an address"));
    }
    if rest.is_empty() {
        return Ok((host, None));
    }
    let port = rest.strip_prefix(':').filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    match port.and_then(|port| port.parse().ok()) {
        Some(port) if port > 0 => Ok((host, Some(port))),
        _ => Err(EndpointError("the port is not a number from 1 to 65535")),
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_for_etcdctl() {
        for (text, plain, tls) in [
            ("127.0.0.1:2379", "http://127.0.0.1:2379", "https://127.0.0.1:2379"),
            ("localhost", "http://localhost:2379", "https://localhost:2379"),
            ("etcd-0.etcd:12379", "http://etcd-0.etcd:12379", "https://etcd-0.etcd:12379"),
            (" [::1]:2379 ", "http://[::1]:2379", "https://[::1]:2379"),
            ("[::1]", "http://[::1]:2379", "https://[::1]:2379"),
            ("http://e:1", "http://e:1", "http://e:1"),
            ("HTTPS://e:1/", "https://e:1", "https://e:1"),
            ("https://etcd.example.com", "https://etcd.example.com", "https://etcd.example.com"),
        ] {
            let endpoint: Endpoint = text.parse().expect(text);
            assert_eq!(
                (endpoint.url(false), endpoint.url(true)),
                (plain.to_owned(), tls.to_owned()),
                "{text}"
            );
            assert_eq!(endpoint.to_string(), text.trim());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            " ",
            ":",
            ":2379",
            "http://",
            "https:///",
            "http://:2379",
            "e:",
            "e:0",
            "e:65536",
            "e:-1",
            "e:+1",
            "e:x",
            "::1",
            "[::1",
            "[]",
            "[x]:1",
            "[::1]2379",
            "e e:1",
            "é:1",
            "a\nb",
            "unix:///run/etcd.sock",
            "ftp://e:1",
            "http://http://e:1",
            "http://u:p@e:1",
            "e:1/v3",
            "e:1?a",
            "%zz:1",
            "127.0.0.1:2379:1",
            "\u{0}",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
        }
    }
}
