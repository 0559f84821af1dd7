//! The OpenAPI v3 documents that a server publishes, at the addresses that its index gives.

use super::{CallError, Cluster};
use etch_core::call_error::{if_there, json};
use etch_core::request::accepting;
use etch_lint::published::index::{OpenApiIndex, ROOT};
use etch_lint::published::{Document, OpenApiError};

const JSON: &str = "application/json";

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

impl Cluster {
    /// Which documents the server publishes.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn openapi_index(&self) -> Result<OpenApiIndex, CallError> {
        OpenApiIndex::read(&self.call(accepting(ROOT, JSON)).await?).map_err(CallError::malformed)
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
        let Some(address) = index.address(api_version) else { return Ok(None) };
        let body = if_there(self.call_in_turn(accepting(address, JSON), &self.turns.crds).await);
        // An API version that is gone since the index was read has an empty document before it has none.
        let Some(body) = body.map_err(called)?.filter(|body| !body.is_empty()) else { return Ok(None) };
        let document = Document::read(json(&body).map_err(called)?);
        document
            .map(Some)
            .map_err(|source| PublishedError::Document { api_version: api_version.to_owned(), source })
    }
}
