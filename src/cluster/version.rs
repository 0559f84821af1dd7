//! Which Kubernetes a cluster runs.

use super::{CallError, Cluster};
use etch_core::request::get;

impl Cluster {
    /// The version of the API server that answers, such as `v1.37.1`. Every client may read it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn kubernetes_version(&self) -> Result<String, CallError> {
        let answer = self.call_for_json(get("/version")).await?;
        Ok(answer["gitVersion"].as_str().unwrap_or_default().to_owned())
    }
}
