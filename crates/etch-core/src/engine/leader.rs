//! Which operator leads, by Leases that are read again and again: the one whose Lease is renewed. It does not
//! rely on the clocks of other machines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

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

/// What a look at the Leases shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// One of them was renewed since the first look.
    Renewed(Leader),
    /// Some have a holder; how long those last at most.
    Held(Duration),
    /// None has a holder.
    Free,
}

/// The Leases that were seen: the resource version of each, by namespace.
#[derive(Debug, Default)]
pub struct LeaderSearch {
    seen: BTreeMap<String, String>,
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

impl LeaderSearch {
    /// Looks at the Leases as they are now.
    ///
    /// # Errors
    /// This is no list of them.
    pub fn look(&mut self, leases: &Value) -> Result<Look, serde_json::Error> {
        let leases = Leases::deserialize(leases)?;
        let mut longest = None;
        for Held { leader, resource_version, duration } in leases.items.iter().filter_map(held) {
            let before =
                self.seen.entry(leader.namespace.clone()).or_insert_with(|| resource_version.clone());
            if *before != resource_version {
                return Ok(Look::Renewed(leader));
            }
            longest = longest.max(Some(duration));
        }
        Ok(longest.map_or(Look::Free, Look::Held))
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
