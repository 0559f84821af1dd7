//! Whether a cluster publishes the defaults of its CRDs.
//! It holds one document and one CRD at a time: either may be of some MiB.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use etch::cluster::Cluster;
use etch_answers::lint::Checked;
use etch_lint::published::index::OpenApiIndex;
use etch_lint::{Finding, lint_published};
use kube_structural_schema::json::{Json, has_field};
use serde_json::Value;

use crate::commands::streams::note;

/// How often a document is read again that is not what the CRD asks for, and after which time: the server
/// publishes a change some moments after it serves it.
const AGAIN: usize = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// The CRDs with defaults, by the API versions that they are served at.
#[derive(Default)]
pub(super) struct Publishing {
    crds: BTreeMap<String, BTreeSet<String>>,
}

impl Publishing {
    /// Takes a CRD in.
    pub(super) fn add(&mut self, crd: &Json) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            if version["served"] == true && has_field(&version["schema"]["openAPIV3Schema"], "default") {
                let api_version = format!("{}/{}", text(&crd["spec"]["group"]), text(&version["name"]));
                self.crds.entry(api_version).or_default().insert(text(&crd["metadata"]["name"]));
            }
        }
    }

    /// Checks what is published of them. If the index cannot be read, it prints a note and checks nothing.
    pub(super) async fn check(self, cluster: &Cluster, checked: &mut Checked) -> Result<()> {
        if self.crds.is_empty() {
            return Ok(());
        }
        let index = match cluster.openapi_index().await {
            Ok(index) => index,
            Err(error) => {
                note(&format!("what the API server publishes is not checked: {error}"))?;
                return Ok(());
            }
        };
        for (api_version, crds) in &self.crds {
            for crd in crds {
                match judged(cluster, &index, api_version, crd).await {
                    Ok(findings) => checked.add(None, crd, findings),
                    Err(error) => checked.failures.push(format!("{crd}: {error:#}")),
                }
            }
        }
        Ok(())
    }
}

/// What is found about a CRD at an API version. Findings that may be due to a lagging server are checked
/// again.
async fn judged(
    cluster: &Cluster,
    index: &OpenApiIndex,
    api_version: &str,
    name: &str,
) -> Result<Vec<Finding>> {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let mut findings = Vec::new();
    let mut index = index.clone();
    for attempt in 0..=AGAIN {
        let Some(crd) = cluster.crd(name).await? else { return Ok(Vec::new()) };
        let document = cluster.openapi(&index, api_version).await?;
        let found = lint_published(&crd, version, document.as_ref())?;
        findings = found.findings;
        if !found.may_be_behind || attempt == AGAIN {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        index = cluster.openapi_index().await?;
    }
    Ok(findings)
}
