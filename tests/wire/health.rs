//! The health port, whose clients are unknown: what they send takes little room, and keeps no other client
//! out. On real sockets, so on a real clock: what must happen is waited for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use etch::server::{Readiness, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const GUARD: Duration = Duration::from_secs(60);
/// More than there are places.
const FLOOD: usize = 300;

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve(listener, Arc::default(), Arc::new(Readiness::default())));
    address
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: etch\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a reader");
    let mut answer = String::new();
    timeout(GUARD, stream.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
    answer
}

/// Waits until the server has closed a connection.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // It is reset where something was not read.
    drop(timeout(GUARD, stream.read_to_end(&mut rest)).await.expect("it is closed"));
}

#[tokio::test]
async fn half_sent_heads_neither_stay_nor_keep_anybody_out() {
    let address = start().await;
    let mut waiting = Vec::new();
    for _ in 0..FLOOD {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        drop(stream.write_all(b"GET /livez HTTP/1.1\r\nX-A: aaaa").await);
        waiting.push(stream);
    }
    for path in ["/livez", "/metrics"] {
        let answer = get(address, path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    let unready = get(address, "/readyz").await;
    assert!(unready.starts_with("HTTP/1.1 500"), "kubectl shows the body of no 503: {unready}");
    // The first are closed to make room, the last when their time is over.
    for stream in waiting {
        closed(stream).await;
    }
}

#[tokio::test]
async fn a_head_has_a_limit() {
    let address = start().await;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let head = format!("GET /livez HTTP/1.1\r\nHost: etch\r\nX-A: {}", "a".repeat(64 << 10));
    drop(stream.write_all(head.as_bytes()).await);
    closed(stream).await;
    let many = "X-A: a\r\n".repeat(1_000);
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    drop(stream.write_all(format!("GET /livez HTTP/1.1\r\nHost: etch\r\n{many}\r\n").as_bytes()).await);
    closed(stream).await;
}
