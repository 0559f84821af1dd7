//! Finds out what answers requests for a group and version: the CRD that defines it, or another server, to
//! which Etch sends no request.

use super::{CallError, Cluster};
use etch_core::call_error::if_there;
use etch_core::rbac::{MissingPermissions, Verb};
use etch_core::request::get;
use etch_core::request::path::named;
use etch_core::request::resources::api_services;
use etch_core::served_elsewhere::{ServedElsewhere, ServedVersions};

impl Cluster {
    /// Makes sure that the API server itself answers requests for a CRD's objects. To be called whenever a
    /// list or a watch of them begins: an APIService may take over at any time.
    ///
    /// # Errors
    /// [`CallError::ServedElsewhere`]; [`CallError::MissingPermission`] if Etch may not read APIServices; any
    /// other error if there is no answer.
    pub async fn check_server(&self, served: &ServedVersions) -> Result<(), CallError> {
        match self.served_elsewhere(served).await {
            Ok(None) => Ok(()),
            Ok(Some(elsewhere)) => Err(CallError::ServedElsewhere(elsewhere)),
            Err(error) if error.code() == Some(403) => {
                Err(CallError::MissingPermission(MissingPermissions::of(&api_services(), vec![Verb::Get])))
            }
            Err(error) => Err(error),
        }
    }

    /// The APIService that answers requests for a CRD's objects in its place, at the first of its served
    /// versions that has one; `None` if the CRD is served at all of them. A server without aggregation knows
    /// no APIServices, and serves the CRDs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn served_elsewhere(
        &self,
        served: &ServedVersions,
    ) -> Result<Option<ServedElsewhere>, CallError> {
        let ServedVersions { group, versions } = served;
        for version in versions {
            let name = format!("{version}.{group}");
            let Some(answer) = if_there(self.call(get(&named(&api_services(), None, &name))).await)? else {
                continue;
            };
            let elsewhere = ServedElsewhere::read(format!("{group}/{version}"), &answer);
            if let Some(elsewhere) = elsewhere.map_err(CallError::malformed)? {
                return Ok(Some(elsewhere));
            }
        }
        Ok(None)
    }
}
