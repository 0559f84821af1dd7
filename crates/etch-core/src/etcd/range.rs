//! What is asked of the JSON gateway of etcd, and its answers, page by page.

use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};

use super::RawValue;

/// A part of what is under a prefix.
#[derive(Debug, Default)]
pub struct EtcdPage {
    /// Keys and values, in the order of the keys.
    pub values: Vec<RawValue>,
    /// Where the next page begins; none after the last.
    pub next: Option<After>,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    key: Vec<u8>,
    /// The revision of the pages before; `None` once etcd has it no more.
    pub revision: Option<String>,
}

#[derive(Serialize)]
struct RangeRequest {
    key: ByteString,
    range_end: ByteString,
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

#[derive(Deserialize)]
struct RangeResponse {
    header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct Header {
    /// The gateway writes 64-bit numbers as strings.
    revision: String,
}

#[derive(Deserialize)]
struct KeyValue {
    key: ByteString,
    /// Absent when empty.
    #[serde(default)]
    value: ByteString,
    mod_revision: String,
}

/// The body that asks for `limit` values under a prefix, which is not empty and ends in ASCII.
pub fn range_of(prefix: &str, after: Option<&After>, limit: u32) -> Vec<u8> {
    let key = after.map_or_else(|| prefix.as_bytes().to_vec(), |after| after.key.clone());
    let request = RangeRequest {
        key: ByteString(key),
        range_end: ByteString(end_of_prefix(prefix)),
        limit: limit.to_string(),
        revision: after.and_then(|after| after.revision.clone()),
    };
    serde_json::to_vec(&request).expect("texts and bytes have a JSON form")
}

impl EtcdPage {
    /// Reads the answer about the page that begins at `after`; `None` if it does not come from etcd.
    pub fn read(answer: &[u8], after: Option<&After>) -> Option<Self> {
        let answer: RangeResponse = serde_json::from_slice(answer).ok()?;
        let revision = after.and_then(|after| after.revision.clone()).or(Some(answer.header.revision));
        let next = answer.kvs.last().filter(|_| answer.more).map(|last| {
            let mut key = last.key.0.clone();
            key.push(0);
            After { key, revision }
        });
        let values = answer.kvs.into_iter().map(|KeyValue { key, value, mod_revision }| RawValue {
            key: String::from_utf8_lossy(&key.0).into_owned(),
            bytes: value.0,
            revision: mod_revision.parse().unwrap_or_default(),
        });
        Some(Self { values: values.collect(), next })
    }
}

/// The first key after all those that begin with `prefix`, which is not empty and ends in ASCII. The key that
/// is the prefix comes before the others.
fn end_of_prefix(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
