//! Requests to an API server, built and not sent; and what an answer by its status means.

pub mod counted;
pub mod event;
pub mod own;
pub mod path;
pub mod resources;
pub mod review;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};

use crate::ownership::MANAGER;
use crate::plan::PatchKind;
use path::encoded;

/// Metadata only: no schemas.
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The same of one object.
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A request for what is at a path.
pub fn get(path: &str) -> Request<Vec<u8>> {
    built(Request::get(path), Vec::new())
}

/// A request with a JSON body.
pub fn send(method: Method, path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    built(Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json"), body)
}

/// A patch by our field manager; an apply is not forced.
pub fn patch(path: &str, kind: PatchKind, body: Vec<u8>) -> Request<Vec<u8>> {
    patch_as(MANAGER, path, kind, body)
}

/// A patch by another field manager than `etch`, which owns fields that must not be `etch`'s.
pub fn patch_as(manager: &str, path: &str, kind: PatchKind, body: Vec<u8>) -> Request<Vec<u8>> {
    let media_type = match kind {
        PatchKind::Apply | PatchKind::ApplyDryRun => "application/apply-patch+yaml",
        PatchKind::Merge => "application/merge-patch+json",
        PatchKind::Json | PatchKind::DryRun => "application/json-patch+json",
    };
    let dry = match kind {
        PatchKind::DryRun | PatchKind::ApplyDryRun => "?dryRun=All",
        PatchKind::Apply | PatchKind::Merge | PatchKind::Json => "",
    };
    let path = format!("{path}{dry}");
    let joint = if path.contains('?') { '&' } else { '?' };
    let target = format!("{path}{joint}fieldManager={manager}");
    built(Request::patch(target).header(CONTENT_TYPE, media_type), body)
}

/// A forced apply by our field manager, only of what is Etch's own.
pub fn forced(path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let joint = if path.contains('?') { '&' } else { '?' };
    patch(&format!("{path}{joint}force=true"), PatchKind::Apply, body)
}

/// A dry run of an apply by another field manager, the one with which the user is going to apply.
pub fn try_apply(path: &str, manager: &str, forced: bool, body: Vec<u8>) -> Request<Vec<u8>> {
    let target = format!("{path}?dryRun=All&fieldManager={}&force={forced}", encoded(manager));
    built(Request::patch(target).header(CONTENT_TYPE, "application/apply-patch+yaml"), body)
}

/// A request for one form of what is there.
pub fn accepting(path: &str, media_type: &str) -> Request<Vec<u8>> {
    answered_with(get(path), media_type)
}

/// The same request, answered with another representation.
pub fn answered_with(mut request: Request<Vec<u8>>, media_type: &str) -> Request<Vec<u8>> {
    if let Ok(value) = media_type.parse() {
        request.headers_mut().insert(ACCEPT, value);
    }
    request
}

fn built(request: http::request::Builder, body: Vec<u8>) -> Request<Vec<u8>> {
    request.body(body).expect("method, headers and an encoded path make a request")
}
