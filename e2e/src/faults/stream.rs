//! What happens to the body of an answer on its way. Rules decide which answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::json;

use super::rule::Fault;

/// A body as it goes to the client; an error closes the connection.
pub(super) type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// How many bytes a piece of a split answer has.
const FEW: usize = 7;

fn broken() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

/// An answer that is there as a whole.
pub(super) fn spoilt(fault: Option<Fault>, body: Bytes) -> Pieces {
    match fault {
        Some(Fault::CutAnswer) => {
            let half = body.slice(..body.len() / 2);
            stream::iter([Ok(half), Err(broken())]).boxed()
        }
        Some(Fault::GarbleAnswer) => whole(Bytes::from_static(b"upstream connect error or disconnect/reset")),
        Some(Fault::SplitAnswer) => {
            let pieces: Vec<_> = body.chunks(FEW).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            stream::iter(pieces).boxed()
        }
        _ => whole(body),
    }
}

fn whole(body: Bytes) -> Pieces {
    stream::iter([Ok(body)]).boxed()
}

/// A watch, which continues for long; `events` counts what the server sends.
pub(super) fn watched(fault: Option<Fault>, body: Pieces, events: Arc<AtomicUsize>) -> Pieces {
    let body = counted(body, events);
    match fault {
        Some(Fault::CloseWatch) => stream::empty().boxed(),
        Some(Fault::GoneInWatch) => first(status(410, "Expired", "too old resource version: 1 (2)"), body),
        Some(Fault::ErrorInWatch) => {
            first(status(500, "InternalError", "etcd event received with PrevKv=nil"), body)
        }
        Some(Fault::GarbleWatch) => first("{\"type\":\"MODI\n".into(), body),
        Some(Fault::CutWatch) => {
            let cut = stream::iter([
                Ok(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"ki")),
                Err(broken()),
            ]);
            cut.boxed()
        }
        Some(Fault::RepeatEvents) => lines(body).flat_map(|line| stream::iter(repeated(line))).boxed(),
        // What is lost comes again: the next watch begins behind the last event that came.
        Some(Fault::LoseEvent(nth)) => {
            let lines = lines(body).enumerate().take(nth + 1);
            lines.map(move |(index, line)| if index == nth { Err(broken()) } else { line }).boxed()
        }
        Some(Fault::DelayEvents(time)) => body
            .then(move |piece| async move {
                tokio::time::sleep(time).await;
                piece
            })
            .boxed(),
        Some(Fault::SplitAnswer) => body
            .flat_map(|piece| match piece {
                Ok(piece) => spoilt(Some(Fault::SplitAnswer), piece),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .boxed(),
        _ => body,
    }
}

fn counted(body: Pieces, events: Arc<AtomicUsize>) -> Pieces {
    let count = move |piece: &io::Result<Bytes>| {
        let lines = piece.as_ref().map_or(0, |piece| piece.iter().filter(|byte| **byte == b'\n').count());
        events.fetch_add(lines, Ordering::Relaxed);
    };
    body.inspect(count).boxed()
}

fn repeated(line: io::Result<Bytes>) -> Vec<io::Result<Bytes>> {
    match line {
        Ok(line) => vec![Ok(line.clone()), Ok(line)],
        Err(error) => vec![Err(error)],
    }
}

fn first(line: Bytes, body: Pieces) -> Pieces {
    stream::iter([Ok(line)]).chain(body).boxed()
}

fn status(code: u16, reason: &str, message: &str) -> Bytes {
    let object = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    Bytes::from(format!("{}\n", json!({ "type": "ERROR", "object": object })))
}

/// The lines of a body, each with its end.
fn lines(body: Pieces) -> Pieces {
    let state = (body, Vec::new());
    stream::unfold(state, |(mut body, mut rest)| async move {
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let after = rest.split_off(end + 1);
                return Some((Ok(Bytes::from(rest)), (body, after)));
            }
            match body.next().await {
                Some(Ok(piece)) => rest.extend_from_slice(&piece),
                Some(Err(error)) => return Some((Err(error), (body, rest))),
                None => return None,
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(pieces: Pieces) -> (String, bool) {
        let (mut text, mut is_broken) = (String::new(), false);
        let mut pieces = pieces;
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => text.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => is_broken = true,
            }
        }
        (text, is_broken)
    }

    fn events() -> Pieces {
        stream::iter(["one\ntw", "o\n"].map(|piece| Ok(Bytes::from_static(piece.as_bytes())))).boxed()
    }

    #[tokio::test]
    async fn answers_are_spoilt_as_asked() {
        let body = Bytes::from_static(b"0123456789");
        assert_eq!(read(spoilt(None, body.clone())).await, ("0123456789".into(), false));
        assert_eq!(read(spoilt(Some(Fault::CutAnswer), body.clone())).await, ("01234".into(), true));
        assert_eq!(read(spoilt(Some(Fault::SplitAnswer), body)).await, ("0123456789".into(), false));
        let count = Arc::new(AtomicUsize::new(0));
        let watched = |fault| watched(Some(fault), events(), Arc::clone(&count));
        assert_eq!(read(watched(Fault::RepeatEvents)).await.0, "one\none\ntwo\ntwo\n");
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(read(watched(Fault::CloseWatch)).await, (String::new(), false));
        assert!(read(watched(Fault::GoneInWatch)).await.0.contains("410"));
        assert!(read(watched(Fault::CutWatch)).await.1);
        assert_eq!(read(watched(Fault::LoseEvent(1))).await, ("one\n".into(), true));
        assert_eq!(read(watched(Fault::LoseEvent(2))).await, ("one\ntwo\n".into(), false));
    }
}
