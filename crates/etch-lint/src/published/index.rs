//! The index of the OpenAPI v3 documents that a server publishes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Where the index is, and what all addresses in it begin with.
pub const ROOT: &str = "/openapi/v3";

/// Which documents there are, and where. The hash in an address is left out: clients that cache need it, and
/// for some time after a document has changed the index has the old hash, which the server answers with a
/// redirect (301).
#[derive(Clone, Debug, Default)]
pub struct OpenApiIndex {
    addresses: BTreeMap<String, String>,
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
    /// Reads the index.
    ///
    /// # Errors
    /// It is none.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let index: Index = serde_json::from_slice(body)?;
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

    /// Where the document of an API version is; `None` if the server publishes none.
    pub fn address(&self, api_version: &str) -> Option<&str> {
        self.addresses.get(api_version).map(String::as_str)
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
