//! The server that answers requests for a group and version in place of the CRD that defines it.

use std::fmt;

use serde::Deserialize;

use crate::crd::Crd;

/// The group and versions of a CRD at which its objects are served, by itself or by another server.
#[derive(Clone, Debug)]
pub struct ServedVersions {
    /// The group.
    pub group: String,
    /// The served versions.
    pub versions: Vec<String>,
}

impl From<&Crd> for ServedVersions {
    fn from(crd: &Crd) -> Self {
        let served = crd.versions().iter().filter(|version| version.served);
        Self { group: crd.group().to_owned(), versions: served.map(|version| version.name.clone()).collect() }
    }
}

/// The value of a label for the groups and versions that the API server serves itself; for those of CRDs it
/// is `true`.
///
/// Source: kubernetes 1.37 `kube-aggregator/pkg/controllers/autoregister`.
const BUILT_IN: &str = "onstart";

/// The server that answers requests for objects of a CRD in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedElsewhere {
    /// `metrics.k8s.io/v1beta1`
    group_version: String,
    server: OtherServer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OtherServer {
    /// The API server, from a type that is built in.
    BuiltIn,
    /// An aggregated API server, behind this Service.
    Aggregated(Service),
}

#[derive(Deserialize)]
struct ApiService {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: Labels,
}

#[derive(Default, Deserialize)]
struct Labels {
    #[serde(default, rename = "kube-aggregator.kubernetes.io/automanaged")]
    automanaged: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    service: Option<Service>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Service {
    namespace: String,
    name: String,
}

impl ApiService {
    /// The server of this group and version; `None` if the CRDs serve it.
    fn other_server(self) -> Option<OtherServer> {
        match self.spec.service {
            Some(service) => Some(OtherServer::Aggregated(service)),
            None => (self.metadata.labels.automanaged == BUILT_IN).then_some(OtherServer::BuiltIn),
        }
    }
}

impl ServedElsewhere {
    /// The server of a group and version by its APIService, of which this is the JSON; `None` if the CRDs
    /// serve it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(group_version: String, api_service: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        let service: ApiService = serde_json::from_slice(api_service)?;
        Ok(service.other_server().map(|server| Self { group_version, server }))
    }

    /// The text without the name of the Service.
    pub fn without_names(&self) -> String {
        match &self.server {
            OtherServer::BuiltIn => self.to_string(),
            OtherServer::Aggregated(_) => {
                format!("an aggregated API server serves {} instead of this CRD", self.group_version)
            }
        }
    }
}

impl fmt::Display for ServedElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group_version, server } = self;
        match server {
            OtherServer::BuiltIn => write!(
                f,
                "the API server serves {group_version} itself; this CRD's defaults would reach built-in \
                 objects"
            ),
            OtherServer::Aggregated(Service { namespace, name }) => write!(
                f,
                "an aggregated API server (Service {namespace}/{name}) serves {group_version} instead of \
                 this CRD; the CRD's defaults would reach that server's objects"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn other_server(document: Value) -> Option<OtherServer> {
        serde_json::from_value::<ApiService>(document).expect("an APIService").other_server()
    }

    #[test]
    fn an_api_service_tells_who_serves_a_group_and_version() {
        let labelled = |value: &str| json!({ "kube-aggregator.kubernetes.io/automanaged": value });
        let service = json!({ "namespace": "system", "name": "metrics", "port": 443 });
        let aggregated =
            OtherServer::Aggregated(Service { namespace: "system".to_owned(), name: "metrics".to_owned() });
        for (labels, spec, expected) in [
            (labelled("true"), json!({ "service": null }), None),
            (labelled("onstart"), json!({ "service": null }), Some(OtherServer::BuiltIn)),
            (json!({}), json!({ "service": service }), Some(aggregated.clone())),
            (labelled("true"), json!({ "service": service }), Some(aggregated)),
            (json!({}), json!({}), None),
        ] {
            assert_eq!(other_server(json!({ "metadata": { "labels": labels }, "spec": spec })), expected);
        }
        assert_eq!(other_server(json!({ "metadata": { "name": "v1.example.com" } })), None);
    }
}
