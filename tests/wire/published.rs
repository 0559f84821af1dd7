//! OpenAPI documents of a server whose index is behind: it names what has changed or is gone.

use serde_json::json;

use super::server::{Answer, serve};

#[tokio::test(start_paused = true)]
async fn what_the_index_does_not_know_yet_is_read_as_it_is() {
    let (cluster, log) = serve(|request| {
        let is_old = request.query.contains_key("hash");
        match request.path.as_str() {
            "/openapi/v3" => Answer::json(json!({ "paths": {
                "apis/changed.example.com/v1": {
                    "serverRelativeURL": "/openapi/v3/apis/changed.example.com/v1?hash=OLD",
                },
                "apis/gone.example.com/v1": {
                    "serverRelativeURL": "/openapi/v3/apis/gone.example.com/v1?hash=OLD",
                },
                "apis/going.example.com/v1": {
                    "serverRelativeURL": "/openapi/v3/apis/going.example.com/v1?hash=OLD",
                },
            } })),
            "/openapi/v3/apis/changed.example.com/v1" if is_old => Answer::text(301, ""),
            "/openapi/v3/apis/changed.example.com/v1" => Answer::json(json!({ "openapi": "3.0.0" })),
            "/openapi/v3/apis/going.example.com/v1" => Answer::text(200, ""),
            _ => Answer::status(404, "NotFound", "the server could not find the requested resource"),
        }
    });
    let index = cluster.openapi_index().await.expect("an index");
    let published =
        async |group| cluster.openapi(&index, &format!("{group}.example.com/v1")).await.expect("an answer");
    assert!(published("changed").await.is_some());
    assert!(published("gone").await.is_none());
    assert!(published("going").await.is_none());
    assert_eq!(log.count(|_| true), 4, "one request for each");
}
