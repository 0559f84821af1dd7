//! The OpenAPI v3 documents that a server publishes, at the addresses that its index gives.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::call::{if_there, json};
use super::crds::accepting;
use super::{CallError, Cluster};
use etch_lint::published::{Document, OpenApiError};

/// Where the index is, and what all addresses in it begin with.
const ROOT: &str = "/openapi/v3";
const JSON: &str = "application/json";

/// Which documents there are, and where. The hash in an address is left out: clients that cache need it, and
/// for some time after a document has changed the index has the old hash, which the server answers with a
/// redirect (301).
#[derive(Clone, Debug, Default)]
pub struct OpenApiIndex {
    addresses: BTreeMap<String, String>,
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The server refuses it, or the server of an aggregated API does not answer.
    #[error("what is published of {api_version}: {source}")]
    Call {
        /// The API version that it is about.
        api_version: String,
        /// The server's answer.
        #[source]
        source: CallError,
    },
    /// It is no OpenAPI v3.
    #[error("what is published of {api_version}: {source}")]
    Document {
        /// The API version that it is about.
        api_version: String,
        /// What is wrong with it.
        #[source]
        source: OpenApiError,
    },
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    paths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "serverRelativeURL")]
    address: String,
}

impl OpenApiIndex {
    fn read(body: &[u8]) -> Result<Self, CallError> {
        let index: Index = serde_json::from_slice(body).map_err(CallError::malformed)?;
        let addresses = index.paths.into_iter().filter_map(|(path, Entry { address })| {
            // The credentials go only to the server that was asked.
            let is_ours = address.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
            let document = address.split('?').next().unwrap_or_default().to_owned();
            Some((api_version(&path)?, document)).filter(|_| is_ours)
        });
        Ok(Self { addresses: addresses.collect() })
    }

    /// The API versions of which types are published, in their order.
    pub fn api_versions(&self) -> impl Iterator<Item = &str> {
        self.addresses.keys().map(String::as_str)
    }

    /// Whether anything is published of an API version.
    pub fn has(&self, api_version: &str) -> bool {
        self.addresses.contains_key(api_version)
    }
}

/// `apps/v1` for `apis/apps/v1`, `v1` for `api/v1`; `None` for paths without types, such as `version` and
/// `apis/apps`.
fn api_version(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["api", version] => Some((*version).to_owned()),
        ["apis", group, version] => Some(format!("{group}/{version}")),
        _ => None,
    }
}

impl Cluster {
    /// Which documents the server publishes.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn openapi_index(&self) -> Result<OpenApiIndex, CallError> {
        OpenApiIndex::read(&self.call(accepting(ROOT, JSON)).await?)
    }

    /// The document of an API version; `None` if the server publishes none.
    ///
    /// # Errors
    /// See [`PublishedError`].
    pub async fn openapi(
        &self,
        index: &OpenApiIndex,
        api_version: &str,
    ) -> Result<Option<Document>, PublishedError> {
        let called = |source| PublishedError::Call { api_version: api_version.to_owned(), source };
        let Some(address) = index.addresses.get(api_version) else { return Ok(None) };
        let body = if_there(self.call_in_turn(accepting(address, JSON), &self.turns.crds).await);
        // An API version that is gone since the index was read has an empty document before it has none.
        let Some(body) = body.map_err(called)?.filter(|body| !body.is_empty()) else { return Ok(None) };
        let document = Document::read(json(&body).map_err(called)?);
        document
            .map(Some)
            .map_err(|source| PublishedError::Document { api_version: api_version.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_types_and_is_here_is_read() {
        let text = r#"{"paths": {
            "version": {"serverRelativeURL": "/openapi/v3/version?hash=1"},
            "apis/apps": {"serverRelativeURL": "/openapi/v3/apis/apps?hash=2"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=3"},
            "apis/evil.example.com/v1": {"serverRelativeURL": "https://evil.example.com/openapi/v3/x"},
            "apis/other.example.com/v1": {"serverRelativeURL": "/openapi/v3evil"},
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=4"}}}"#;
        let index = OpenApiIndex::read(text.as_bytes()).expect("an index");
        assert!(index.api_versions().eq(["apps/v1", "v1"]));
        assert_eq!(index.addresses["v1"], "/openapi/v3/api/v1", "whatever it is by now");
        assert!(OpenApiIndex::read(b"{").is_err());
    }
}
