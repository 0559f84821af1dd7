//! An HTTPS server on loopback that API servers call as a webhook, and that goes down and comes back at one
//! address. The caller decides what it answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// What is answered to the `request` of a review: its `response`, without the uid. To a request that is none,
/// whose `method` and `path` are given: the answer itself.
type Answer = dyn Fn(&Value) -> Value + Send + Sync;

/// A webhook for admission or conversion.
pub struct Webhook {
    address: SocketAddr,
    certificate: ByteString,
    acceptor: TlsAcceptor,
    handler: Handler,
    serving: Option<JoinHandle<()>>,
}

/// Where reviews are answered.
#[derive(Clone)]
struct Handler {
    answer: Arc<Answer>,
    /// Whether answers are held back.
    held: watch::Sender<bool>,
    /// How many reviews wait for that.
    waiting: Arc<AtomicUsize>,
}

impl Webhook {
    /// Starts a server that gives these answers.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Result<Self> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut webhook = Self {
            address: listener.local_addr()?,
            certificate: ByteString(cert.pem().into_bytes()),
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handler: Handler {
                answer: Arc::new(answer),
                held: watch::Sender::new(false),
                waiting: Arc::default(),
            },
            serving: None,
        };
        webhook.serve(listener);
        Ok(webhook)
    }

    /// Its port on `127.0.0.1`.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The `clientConfig` of a webhook's configuration.
    pub fn client_config(&self) -> Value {
        json!({ "url": format!("https://{}/", self.address), "caBundle": self.certificate })
    }

    /// Reads reviews and keeps its answers to itself, until [`Self::release`].
    pub fn hold(&self) {
        self.handler.held.send_replace(true);
    }

    /// Gives the answers that were held back, and all others at once.
    pub fn release(&self) {
        self.handler.held.send_replace(false);
    }

    /// How many reviews wait for an answer that is held back.
    pub fn waiting(&self) -> usize {
        self.handler.waiting.load(Ordering::SeqCst)
    }

    /// Refuses connections from now on, and ends those that there are.
    pub fn go_down(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }

    /// Takes connections from now on, and answers none: a client has to wait for its own deadline.
    ///
    /// # Errors
    /// Another process has taken the port.
    pub async fn go_silent(&mut self) -> Result<()> {
        let listener = self.listen_again().await?;
        self.serving = Some(tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        }));
        Ok(())
    }

    /// Answers again.
    ///
    /// # Errors
    /// Another process has taken the port.
    pub async fn come_back(&mut self) -> Result<()> {
        let listener = self.listen_again().await?;
        self.serve(listener);
        Ok(())
    }

    async fn listen_again(&mut self) -> Result<TcpListener> {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // The port is free once the task has ended.
            let _ = serving.await;
        }
        TcpListener::bind(self.address).await.context("the webhook's port")
    }

    fn serve(&mut self, listener: TcpListener) {
        let (acceptor, handler) = (self.acceptor.clone(), self.handler.clone());
        self.serving = Some(tokio::spawn(async move {
            // Ends with this task, and all connections with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, acceptor.clone(), handler.clone()));
            }
        }));
    }
}

impl Handler {
    async fn wait(&self) {
        let mut held = self.held.subscribe();
        if *held.borrow_and_update() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            // The sender is this handler's own.
            let _ = held.wait_for(|held| !held).await;
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.go_down();
    }
}

/// What a conversion webhook answers that changes nothing but the version.
pub fn renamed(request: &Value) -> Value {
    let objects = request["objects"].as_array().into_iter().flatten().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        object
    });
    json!({ "convertedObjects": objects.collect::<Vec<_>>(), "result": { "status": "Success" } })
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, handler: Handler) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request| reviewed(request, handler.clone()));
    // A client that hangs up needs no more of the answer.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn reviewed(request: Request<Incoming>, handler: Handler) -> Result<Response<Full<Bytes>>, Infallible> {
    let line = json!({ "method": request.method().as_str(), "path": request.uri().path() });
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    handler.wait().await;
    let answer = match review.get("request") {
        Some(request) => {
            let mut response = (handler.answer)(request);
            response["uid"] = request["uid"].clone();
            json!({ "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response })
        }
        None => (handler.answer)(&line),
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    Ok(response)
}
