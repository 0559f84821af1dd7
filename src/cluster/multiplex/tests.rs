use std::future::ready;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream as Socket};
use std::sync::{Barrier, mpsc};
use std::thread;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::Version;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper_util::server::conn::auto;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::*;

/// Serves each connection on a thread of its own, until the process ends.
fn serving(serve: impl Fn(Socket) -> io::Result<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(connection));
        }
    });
    address
}

/// What a client sends before it waits for an answer.
fn head(connection: &mut Socket) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        head.extend(byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn api_server() -> SocketAddr {
    serving(|mut connection| {
        head(&mut connection)?;
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    })
}

fn pass_on(client: Socket, server: Socket) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut from, &mut to));
    let (mut client, mut server) = (client, server);
    io::copy(&mut server, &mut client).map(drop)
}

/// A read and a watch through a proxy, and what the proxy was asked.
async fn through(proxy: SocketAddr, scheme: &str, server: SocketAddr) {
    let mut config = Config::new(format!("http://{server}").parse().expect("a URL"));
    config.accept_invalid_certs = true;
    let url = format!("{scheme}://user:pass%40word@{proxy}");
    let proxy = Proxy::named(&url, &config.cluster_url).expect("a proxy");
    let client = client(config, Some(proxy)).expect("a client");
    for path in ["/version", "/apis/example.com/v1/things?watch=true"] {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let answer = client.send(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test]
async fn reads_and_watches_go_through_an_http_proxy() {
    let server = api_server();
    let (send, asked) = mpsc::channel();
    let proxy = serving(move |mut connection| {
        let head = head(&mut connection)?;
        let _ = send.send(head);
        connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        pass_on(connection, Socket::connect(server)?)
    });
    through(proxy, "http", server).await;
    let asked: Vec<String> = asked.try_iter().collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for head in asked {
        assert!(head.starts_with(&format!("CONNECT {server} HTTP/1.1\r\n")), "{head}");
        // user:pass@word
        assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnzqhdvcmq="), "{head}");
    }
}

#[tokio::test]
async fn reads_and_watches_go_through_a_socks_proxy() {
    let server = api_server();
    let (send, asked) = mpsc::channel();
    let proxy = serving(move |mut connection| {
        let mut beginning = [0; 2];
        connection.read_exact(&mut beginning)?;
        connection.read_exact(&mut vec![0; usize::from(beginning[1])])?;
        connection.write_all(&[5, 2])?;
        let mut credentials = [0; 16];
        connection.read_exact(&mut credentials)?;
        connection.write_all(&[1, 0])?;
        let mut destination = [0; 10];
        connection.read_exact(&mut destination)?;
        connection.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let _ = send.send((credentials, destination));
        pass_on(connection, Socket::connect(server)?)
    });
    through(proxy, "socks5", server).await;
    let asked: Vec<_> = asked.try_iter().collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for (credentials, destination) in asked {
        assert_eq!(&credentials, b"\x01\x04user\x09pass@word");
        assert_eq!(destination[..8], [5, 1, 0, 1, 127, 0, 0, 1]);
    }
}

#[tokio::test]
async fn reads_and_watches_go_through_an_https_proxy() {
    let server = api_server();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (send, asked) = mpsc::channel();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(tls(&[])));
        while let Ok((connection, _)) = listener.accept().await {
            let mut client = acceptor.accept(connection).await?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await?);
            }
            let _ = send.send(String::from_utf8_lossy(&head).into_owned());
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            client.flush().await?;
            let mut server = TcpStream::connect(server).await?;
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
        io::Result::Ok(())
    });
    through(address, "https", server).await;
    let asked: Vec<String> = asked.try_iter().collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(
        asked.iter().all(|head| head.starts_with(&format!("CONNECT {server} HTTP/1.1\r\n"))),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named_without_its_password() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let config = Config::new(Uri::from_static("https://api.example.com"));
    let proxy = Proxy::named(&format!("http://user:hunter2@{gone}"), &config.cluster_url).expect("a proxy");
    let client = client(config, Some(proxy)).expect("a client");
    let request = Request::get("/version").body(Body::empty()).expect("a request");
    let error = client.send(request).await.map(drop).expect_err("there is no proxy");
    assert_eq!(cause(&error), format!("connection refused (through the proxy http://{gone} of proxy-url)"));
}

type Parts = BoxStream<'static, io::Result<Frame<Bytes>>>;

/// A certificate for `localhost`, and clients with these certificates or without one.
fn tls(known: &[CertificateDer<'static>]) -> rustls::ServerConfig {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("an authority");
    known.iter().for_each(|client| roots.add(client.clone()).expect("an authority"));
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), ring.clone());
    let clients = clients.allow_unauthenticated().build();
    rustls::ServerConfig::builder_with_provider(ring)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .expect("versions")
        .with_client_cert_verifier(clients.expect("a verifier"))
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("certificate and key belong together")
}

/// A server that speaks TLS, also HTTP/2 with one stream at a time. It answers by the certificate of the
/// client, which `known` has to contain, and an answer to a watch never ends.
async fn tls_server(
    known: &[CertificateDer<'static>],
    status: impl Fn(Option<&CertificateDer<'static>>) -> u16 + Clone + Send + 'static,
) -> Config {
    let mut tls = tls(known);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut config = Config::new(
        format!("https://{}", listener.local_addr().expect("an address")).parse().expect("a URL"),
    );
    config.accept_invalid_certs = true;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, status) = (acceptor.clone(), status.clone());
            tokio::spawn(async move {
                let Ok(connection) = acceptor.accept(connection).await else { return };
                let client =
                    connection.get_ref().1.peer_certificates().and_then(|chain| chain.first().cloned());
                let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                    let body: Parts = match request.uri().query() {
                        Some(_) => stream::pending().boxed(),
                        None => stream::empty().boxed(),
                    };
                    let answer = http::Response::builder().status(status(client.as_ref()));
                    ready(answer.body(StreamBody::new(body)))
                });
                let mut server = auto::Builder::new(TokioExecutor::new());
                server.http2().max_concurrent_streams(1);
                let _ = server.serve_connection(TokioIo::new(connection), answer).await;
            });
        }
    });
    config
}

fn asking(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

#[tokio::test]
async fn a_watch_that_gets_no_answer_leaves_a_connection_that_others_fill() {
    let config = tls_server(&[], |_| 200).await;
    let client = client(config, None).expect("a client");
    let watch = || client.send(asking("/apis/example.com/v1/things?watch=true"));
    let first = watch().await.expect("an answer");
    // The one that waits on the connection of the first is given up some time, and sent again.
    let mut patience = Duration::from_millis(50);
    let second = loop {
        match tokio::time::timeout(patience, watch()).await {
            Ok(second) => break second.expect("an answer"),
            Err(_) => patience *= 2,
        }
        assert!(patience < Duration::from_secs(60), "it waits for the first watch to end");
    };
    assert_eq!([first.version(), second.version()], [Version::HTTP_2; 2]);
}

#[tokio::test]
async fn connections_without_a_request_are_closed() {
    const AT_ONCE: usize = 4;
    let (all_asked, (send, closed)) = (Arc::new(Barrier::new(AT_ONCE)), mpsc::channel());
    let server = serving(move |mut connection| {
        head(&mut connection)?;
        all_asked.wait();
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")?;
        let _ = send.send(connection.read(&mut [0])?);
        Ok(())
    });
    let config = Config::new(format!("http://{server}").parse().expect("a URL"));
    let client = client(config, None).expect("a client");
    let read = async |()| {
        let request = Request::get("/version").body(Vec::new()).expect("a request");
        client.request_text(request).await
    };
    let answers = futures::future::join_all([(); AT_ONCE].map(read)).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|body| body == "{}")), "{answers:?}");
    tokio::time::pause();
    tokio::time::sleep(2 * IDLE).await;
    let read = (0..AT_ONCE).map(move |_| closed.recv_timeout(Duration::from_secs(60)));
    let read = tokio::task::spawn_blocking(|| read.collect::<Result<Vec<_>, _>>()).await.expect("an end");
    assert_eq!(read, Ok(vec![0; AT_ONCE]), "bytes that are read after the answer");
}

#[tokio::test]
async fn a_certificate_that_is_refused_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
    let made = || rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
    let [old, new] = [made(), made()];
    let renewed = new.cert.der().clone();
    let status = move |client: Option<&CertificateDer<'_>>| if client == Some(&renewed) { 200 } else { 401 };
    let mut config = tls_server(&[old.cert.der().clone(), new.cert.der().clone()], status).await;
    let write = |of: &CertifiedKey<KeyPair>| {
        std::fs::write(&certificate, of.cert.pem()).expect("a file");
        std::fs::write(&key, of.signing_key.serialize_pem()).expect("a file");
    };
    config.auth_info.client_certificate = Some(certificate.display().to_string());
    config.auth_info.client_key = Some(key.display().to_string());
    write(&old);
    let client = client(config, None).expect("a client");
    write(&new);
    let mut answers = Vec::new();
    for path in ["/version", "/version", "/apis/example.com/v1/things?watch=true"] {
        answers.push(client.send(asking(path)).await.expect("an answer").status().as_u16());
    }
    assert_eq!(answers, [401, 200, 200]);
}

/// A server that knows one token.
fn knows(token: &'static str) -> SocketAddr {
    serving(move |mut connection| {
        let is_known = head(&mut connection)?.contains(&format!("uthorization: Bearer {token}\r\n"));
        let status = if is_known { "200 OK" } else { "401 Unauthorized" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
        connection.write_all(answer.as_bytes())
    })
}

/// A client with this plugin, of a server that knows one token.
fn with_plugin(token: &'static str, script: &str) -> kube::Client {
    let exec = serde_json::json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", script],
    } });
    let mut config = Config::new(format!("http://{}", knows(token)).parse().expect("a URL"));
    config.auth_info = serde_json::from_value(exec).expect("credentials");
    client(config, None).expect("a client")
}

#[tokio::test]
async fn a_plugin_runs_again_when_its_token_is_refused_or_has_lost_its_expiry() {
    for expiry in ["", r#", "expirationTimestamp": "2020-01-01T00:00:00Z""#] {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            r#"cd {}; [ -e ran ] && token=new || token=old expiry='{expiry}'; touch ran;
            echo "{{\"kind\": \"ExecCredential\", \"status\": {{\"token\": \"$token\"$expiry}}}}""#,
            folder.path().display()
        );
        let client = with_plugin("new", &script);
        let first = client.send(asking("/version")).await;
        assert!(!first.is_ok_and(|answer| answer.status() != 401), "{expiry}");
        assert_eq!(client.send(asking("/version")).await.expect("an answer").status(), 200, "{expiry}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_slower_than_a_request_has_its_token_for_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    // The second run waits until it may continue.
    let script = format!(
        r#"cd {}; echo run >>runs; year=2020
        if [ "$(wc -l <runs)" -gt 1 ]; then year=2120; while [ ! -e go ]; do sleep 0.02; done; fi
        echo "{{\"kind\": \"ExecCredential\", \"status\": {{\"token\": \"a\", \"expirationTimestamp\": \"$year-01-01T00:00:00Z\"}}}}""#,
        folder.path().display()
    );
    let client = with_plugin("a", &script);
    let given_up = tokio::time::timeout(Duration::from_millis(100), client.send(asking("/version"))).await;
    assert!(given_up.is_err(), "the plugin waits");
    std::fs::write(folder.path().join("go"), "").expect("a file");
    assert_eq!(client.send(asking("/version")).await.expect("an answer").status(), 200);
    let runs = std::fs::read_to_string(folder.path().join("runs")).expect("the runs");
    assert_eq!(runs.lines().count(), 2);
}

#[tokio::test]
async fn a_token_file_counts_more_than_a_token_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "file\n").expect("a file");
    let mut config = Config::new(format!("http://{}", knows("file")).parse().expect("a URL"));
    config.auth_info.token = Some("inline".to_owned().into());
    config.auth_info.token_file = Some(file.display().to_string());
    let client = client(config, None).expect("a client");
    assert_eq!(client.send(asking("/version")).await.expect("an answer").status(), 200);
}
