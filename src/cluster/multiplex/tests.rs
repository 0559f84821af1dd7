use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream as Socket};
use std::sync::mpsc;
use std::thread;

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
    let config = Config::new(format!("http://{server}").parse().expect("a URL"));
    let url = format!("{scheme}://user:pass%40word@{proxy}");
    let proxy = Proxy::named(&url, &config.cluster_url).expect("a proxy");
    let client = client(config, Some(&proxy)).expect("a client");
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
async fn a_proxy_that_is_not_there_is_named_without_its_password() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let config = Config::new(Uri::from_static("https://api.example.com"));
    let proxy = Proxy::named(&format!("http://user:hunter2@{gone}"), &config.cluster_url).expect("a proxy");
    let client = client(config, Some(&proxy)).expect("a client");
    let request = Request::get("/version").body(Body::empty()).expect("a request");
    let error = client.send(request).await.map(drop).expect_err("there is no proxy");
    assert_eq!(cause(&error), format!("connection refused (through the proxy http://{gone} of proxy-url)"));
}
