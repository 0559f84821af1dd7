//! Which operator leads, for a process that does not lead itself: it watches whether the Lease is renewed.
//! It does not rely on the clocks of other machines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{CallError, Cluster};
use etch_core::request::get;
use etch_core::request::path::encoded;

/// How often Etch looks whether a Lease was renewed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a Lease without `leaseDurationSeconds` lasts.
const USUAL: u64 = 15;

/// An operator that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Where its Lease is.
    pub namespace: String,
    /// The pod, or the machine.
    pub instance: String,
    /// When it acquired the Lease, as the Lease has it.
    pub since: Option<String>,
}

#[derive(Deserialize)]
struct Leases {
    items: Vec<Value>,
}

/// A Lease that has a holder.
struct Held {
    leader: Leader,
    resource_version: String,
    duration: Duration,
}

impl Cluster {
    /// The operator that holds a Lease of this name, in any namespace; `None` if no such Lease is renewed for
    /// as long as it lasts.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn leader(&self, name: &str) -> Result<Option<Leader>, CallError> {
        let path = format!(
            "/apis/coordination.k8s.io/v1/leases?fieldSelector={}",
            encoded(&format!("metadata.name={name}"))
        );
        let began = Instant::now();
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        loop {
            let answer = self.call_for_json(get(&path)).await?;
            let leases = Leases::deserialize(&*answer).map_err(CallError::malformed)?;
            let held: Vec<Held> = leases.items.iter().filter_map(held).collect();
            for lease in &held {
                let namespace = lease.leader.namespace.clone();
                let before = seen.entry(namespace).or_insert_with(|| lease.resource_version.clone());
                if *before != lease.resource_version {
                    return Ok(Some(lease.leader.clone()));
                }
            }
            let longest = held.iter().map(|lease| lease.duration).max();
            if longest.is_none_or(|longest| began.elapsed() > longest) {
                return Ok(None);
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// A Lease that an operator of Etch holds: others may have given one the same name.
fn held(lease: &Value) -> Option<Held> {
    let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
    let (instance, process) = spec["holderIdentity"].as_str()?.rsplit_once('_')?;
    let is_ours =
        process.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_ours.then(|| Held {
        leader: Leader {
            namespace: metadata["namespace"].as_str().unwrap_or_default().to_owned(),
            instance: instance.to_owned(),
            since: spec["acquireTime"].as_str().map(str::to_owned),
        },
        resource_version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or(USUAL)),
    })
}
