//! The admission server as API servers reach it: over TLS, by HTTP/1.1 and 2, until it ends.
//! On real sockets, so on a real clock: what must happen is waited for.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etch::metrics::Metrics;
use etch::server::admission::{
    AcceptedKeys, AdmissionHandler, Certificates, References, Served, ServedSchemas, serve,
};
use etch_admission::{Compiled, PathKey};
use futures::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const GUARD: Duration = Duration::from_secs(60);

/// A server, and what it is to be trusted by.
struct Rig {
    address: SocketAddr,
    authority: CertificateDer<'static>,
    end: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
    metrics: Arc<Metrics>,
    /// A reference is being looked up.
    asked: Arc<Notify>,
    /// Whether lookups are answered.
    answers: watch::Sender<bool>,
    _folder: TempDir,
}

impl Rig {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        for (name, text) in
            [("tls.crt", cert.pem()), ("ca.crt", cert.pem()), ("tls.key", signing_key.serialize_pem())]
        {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let metrics = Arc::new(Metrics::default());
        let certificates = Certificates::new(metrics.clone());
        let tls = certificates.tls().expect("TLS 1.3");
        let (usable, has_one) = oneshot::channel();
        let usable = std::sync::Mutex::new(Some(usable));
        let path = folder.path().to_owned();
        tokio::spawn(async move {
            let ready = || {
                let _ = usable.lock().expect("no panic").take().map(|usable| usable.send(()));
            };
            match certificates.follow_folder(path, ready).await {}
        });
        timeout(GUARD, has_one).await.expect("in time").expect("a certificate");

        let (asked, answers) = (Arc::new(Notify::new()), watch::Sender::new(true));
        let references = {
            let (asked, answers) = (asked.clone(), answers.clone());
            References::new(move |_| {
                let (asked, mut answers) = (asked.clone(), answers.subscribe());
                async move {
                    asked.notify_one();
                    answers.wait_for(|answers| *answers).await.ok()?;
                    Some(Some(false))
                }
                .boxed()
            })
        };
        let handler = AdmissionHandler::new(serving(), references, metrics.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (end, ended) = oneshot::channel();
        let keys = AcceptedKeys::default();
        keys.set(&[key()]);
        let over = async move { drop(ended.await) };
        let server = tokio::spawn(serve(listener, tls, handler.router(), keys, over));
        let authority = cert.der().clone();
        Self { address, authority, end: Some(end), server, metrics, asked, answers, _folder: folder }
    }

    async fn connect(&self, protocol: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TcpStream::connect(self.address).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Asks over a connection of its own.
    async fn ask(&self, protocol: &str, path: &str, body: &Value) -> (u16, Value) {
        let stream = self.connect(protocol).await.expect("a connection");
        let version = stream.get_ref().1.protocol_version();
        assert_eq!(version, Some(rustls::ProtocolVersion::TLSv1_3));
        let request = http::Request::post(format!("https://localhost{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request");
        let stream = TokioIo::new(stream);
        let answer = match protocol {
            "h2" => {
                let (mut client, connection) =
                    http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
                tokio::spawn(connection);
                client.send_request(request).await
            }
            _ => {
                let (mut client, connection) = http1::handshake(stream).await.expect("HTTP/1.1");
                tokio::spawn(connection);
                client.send_request(request).await
            }
        };
        let answer = answer.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

fn key() -> PathKey {
    PathKey::new([7; 32])
}

/// A path as API servers have it.
fn keyed(path: &str) -> String {
    format!("/{}{path}", key().as_str())
}

fn serving() -> ServedSchemas {
    let declaration = json!({
        "targets": [{ "group": "example.com", "version": "v1", "resource": "things", "path": ".spec" }],
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "string", "default": "small" },
            "count": { "type": "integer", "minimum": 1 },
            "name": { "type": "string", "maxLength": 3 },
            "secret": { "type": "string" },
        } } },
        "references": [{ "path": ".secret", "resource": "secrets", "message": "it is not there" }],
        "enforcement": "Deny",
    });
    let schema = Compiled::new(&serde_json::from_value(declaration).expect("a declaration"));
    let served =
        Served { schema: Arc::new(schema.expect("it compiles")), facts: json!({}), missing: Vec::new() };
    let serving = ServedSchemas::default();
    serving.set([("one".to_owned(), served)].into());
    serving
}

fn review(spec: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": "CREATE", "name": "x", "namespace": "ns",
            "kind": { "group": "example.com", "version": "v1", "kind": "Thing" },
            "resource": { "group": "example.com", "version": "v1", "resource": "things" },
            "object": { "apiVersion": "example.com/v1", "kind": "Thing",
                        "metadata": { "name": "x", "namespace": "ns" }, "spec": spec },
        },
    })
}

#[tokio::test]
async fn both_questions_are_answered_over_both_protocols() {
    let rig = Rig::start().await;
    for protocol in ["http/1.1", "h2"] {
        let (status, answer) = rig.ask(protocol, &keyed("/mutate/one"), &review(json!({}))).await;
        let response = &answer["response"];
        assert_eq!((status, &response["uid"], &response["allowed"]), (200, &json!("7"), &json!(true)));
        // [{"op":"add","path":"/spec/size","value":"small"}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2l6ZSIsInZhbHVlIjoic21hbGwifV0=";
        assert_eq!((&response["patchType"], &response["patch"]), (&json!("JSONPatch"), &json!(patch)));

        let bad = review(json!({ "size": "l", "count": 0, "name": "long" }));
        let (status, answer) = rig.ask(protocol, &keyed("/validate/one"), &bad).await;
        assert_eq!(status, 200);
        let refusal = &answer["response"]["status"];
        assert_eq!((&refusal["code"], &refusal["reason"]), (&json!(422), &json!("Invalid")));
        assert_eq!(
            refusal["message"],
            "Thing.example.com \"x\" is invalid: [spec.count: Invalid value: count in body should be greater \
             than or equal to 1, spec.name: Too long: may not be more than 3 bytes]"
        );
        let (status, _) = rig.ask(protocol, &keyed("/validate/one"), &json!([])).await;
        assert_eq!(status, 400);
    }
    let shown = rig.metrics.text();
    assert!(
        shown.contains(r#"etch_admission_reviews_total{schema="one",operation="CREATE",outcome="Denied"} 2"#),
        "{shown}"
    );
    assert!(shown.contains("etch_admission_review_duration_seconds_count 4"), "{shown}");
    let expires =
        shown.lines().find(|line| line.starts_with("etch_admission_certificate_expiry_timestamp_seconds "));
    assert!(expires.is_some_and(|line| !line.ends_with(" 0")), "{shown}");
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered_and_nothing_is_taken_after_it() {
    let mut rig = Rig::start().await;
    rig.answers.send_replace(false);
    let body = review(json!({ "size": "l", "secret": "s" }));
    let mut end = rig.end.take();
    let path = keyed("/validate/one");
    let asking = rig.ask("h2", &path, &body);
    let ending = async {
        timeout(GUARD, rig.asked.notified()).await.expect("it is looked up");
        drop(end.take());
        // The port is given back at once, while the request is still under way.
        timeout(GUARD, async {
            while TcpStream::connect(rig.address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("no connection is taken any more");
        rig.answers.send_replace(true);
    };
    let ((status, answer), ()) = tokio::join!(asking, ending);
    assert_eq!((status, &answer["response"]["allowed"]), (200, &json!(true)));
    timeout(GUARD, &mut rig.server).await.expect("the server ends").expect("without a panic");
}

#[tokio::test]
async fn who_does_not_trust_the_certificate_or_does_not_speak_is_nobody_elses_trouble() {
    let mut rig = Rig::start().await;
    let silent = TcpStream::connect(rig.address).await.expect("a connection");
    let trusted = rig.authority.clone();
    let CertifiedKey { cert, .. } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    rig.authority = cert.der().clone();
    assert!(rig.connect("h2").await.is_err(), "another authority");
    rig.authority = trusted;
    let (status, _) = rig.ask("h2", &keyed("/validate/one"), &review(json!({}))).await;
    assert_eq!(status, 200);
    drop(silent);
}

/// Everything that a server sends until it closes the connection.
async fn all_of(mut stream: TlsStream<TcpStream>) -> String {
    let mut answer = Vec::new();
    // Where a client has sent more than was read, it is reset.
    drop(timeout(GUARD, stream.read_to_end(&mut answer)).await.expect("it is closed"));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn who_brings_no_key_learns_nothing() {
    let rig = Rig::start().await;
    let bad = review(json!({ "count": 0, "secret": "s" }));
    let another = format!("/{}/validate/one", "08".repeat(32));
    let upper = keyed("/validate/one").replace("07", "7");
    let paths = [
        "/",
        "/mutate",
        "/mutate/one",
        "/validate",
        "/validate/one",
        "/validate/nothing",
        "/guard",
        &another,
        &upper,
    ];
    for protocol in ["http/1.1", "h2"] {
        for path in paths {
            assert_eq!(rig.ask(protocol, path, &bad).await, (404, Value::Null), "{protocol} {path}");
        }
    }
    let shown = rig.metrics.text();
    assert!(shown.contains("etch_admission_review_duration_seconds_count 0"), "{shown}");
    // A body is not waited for.
    let mut stream = rig.connect("http/1.1").await.expect("a connection");
    let head = "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: \
        4194304\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("a reader");
    let answer = all_of(stream).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("content-length: 0"), "{answer}");
}

#[tokio::test]
async fn strangers_keep_no_api_server_out_and_do_not_stay() {
    let rig = Rig::start().await;
    // One that is known, over a connection from before.
    let stream = TokioIo::new(rig.connect("h2").await.expect("a connection"));
    let (mut known, connection) = http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = || {
        http::Request::post(format!("https://localhost{}", keyed("/validate/one")))
            .body(Full::new(Bytes::from(review(json!({})).to_string())))
            .expect("a request")
    };
    assert_eq!(known.send_request(request()).await.expect("an answer").status(), 200);

    // Some send nothing, some do not go beyond the handshake, and some not beyond the middle of a head.
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(rig.address).await.expect("a connection"));
    }
    let mut slow = Vec::new();
    for number in 0..40 {
        let mut stream =
            rig.connect(if number % 2 == 0 { "h2" } else { "http/1.1" }).await.expect("a connection");
        drop(stream.write_all(b"POST /validate HTTP/1.1\r\nX-A: a").await);
        slow.push(stream);
    }
    assert_eq!(known.send_request(request()).await.expect("an answer").status(), 200);
    for protocol in ["http/1.1", "h2"] {
        let (status, _) = rig.ask(protocol, &keyed("/validate/one"), &review(json!({}))).await;
        assert_eq!(status, 200, "{protocol}");
    }
    for mut stream in silent {
        let read = timeout(GUARD, stream.read_to_end(&mut Vec::new())).await;
        drop(read.expect("it is closed"));
    }
    for stream in slow {
        all_of(stream).await;
    }
    assert_eq!(known.send_request(request()).await.expect("an answer").status(), 200);
}
