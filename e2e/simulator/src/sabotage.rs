//! Each law broken on purpose, where Etch meets the world: in a request on its way out, in an answer, or in
//! what is remembered. It must not be known to the product.

use std::fmt;
use std::str::FromStr;

use etch_core::object::Object;
use etch_core::plan::Write;
use serde_json::{Value, json};

use super::server::{Request, Verb, payload};

/// A way to break a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sabotage {
    /// Requests name no resource version: a race is won.
    NamesNoRevision,
    /// Applies that name neither a uid nor a resource version are sent: what is gone comes back.
    NamesNobody,
    /// What is gone is created again.
    CreatesWhatIsGone,
    /// Applies carry the values that were read.
    AppliesValues,
    /// The same, from any owner, and any value that stands there by now.
    ForcesValues,
    /// Merge patches carry the values that were read, as they were read first.
    PutsBackWhatWasRead,
    /// No value follows its default.
    FollowsNothing,
    /// Values follow their default though they have owners.
    FollowsWhatIsOwned,
    /// Owners are not moved: an empty merge patch is sent in place of it.
    LeavesOwnersBehind,
    /// Where owners were moved, nothing follows a changed default.
    EndsWithARewrite,
    /// The entry that a write leaves is not removed.
    LeavesItsEntry,
    /// Fields that only etcd still holds are no reason to wait.
    IgnoresHiddenFields,
    /// A write that changed something needs no proof.
    ProvesNothing,
    /// An answer that lacks a default counts as one that shows it.
    BelievesEveryAnswer,
    /// What the last pass proved holds for every schema.
    RemembersTooMuch,
    /// Values of changed defaults are left to a server that may lag behind, and nothing is verified later.
    SendsNoChangedValues,
    /// What a server that may lag behind shows is taken for stored.
    DoubtsNothing,
    /// What was written while servers lagged behind is not verified.
    VerifiesNothing,
    /// A pass is on record before it begins.
    RecordsAhead,
    /// A request that is not answered has been carried out.
    BelievesInSilence,
    /// A merge patch notes when it was sent.
    MarksWhatItWrites,
    /// What others write after the pass is not looked at.
    HearsNothing,
    /// Whether the CRD is still the one that was read is not asked before a write.
    NeverAsksForTheGeneration,
    /// That a create drops the status is not known.
    TakesStatusForStored,
    /// Old versions are taken out of `status.storedVersions` before the objects are asked about.
    TrimsAhead,
    /// A webhook is taken to convert as nothing does: by the `apiVersion` alone.
    TrustsTheWebhook,
    /// A version that is not served any more, or has the same schema by now, was never served otherwise.
    ForgetsWhatWasServed,
    /// A default that went with its field leaves nothing behind.
    ForgetsFormerDefaults,
    /// An annotation is no reason to leave an object alone.
    WritesWhatIsIgnored,
    /// A replica continues that has lost the Lease.
    GoesOnWithoutTheLease,
    /// A Lease is taken over before its holder has stopped.
    TakesTheLeaseEarly,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 31] = [
        Self::NamesNoRevision,
        Self::NamesNobody,
        Self::CreatesWhatIsGone,
        Self::AppliesValues,
        Self::ForcesValues,
        Self::PutsBackWhatWasRead,
        Self::FollowsNothing,
        Self::FollowsWhatIsOwned,
        Self::LeavesOwnersBehind,
        Self::EndsWithARewrite,
        Self::LeavesItsEntry,
        Self::IgnoresHiddenFields,
        Self::ProvesNothing,
        Self::BelievesEveryAnswer,
        Self::RemembersTooMuch,
        Self::SendsNoChangedValues,
        Self::DoubtsNothing,
        Self::VerifiesNothing,
        Self::RecordsAhead,
        Self::BelievesInSilence,
        Self::MarksWhatItWrites,
        Self::HearsNothing,
        Self::NeverAsksForTheGeneration,
        Self::TakesStatusForStored,
        Self::TrimsAhead,
        Self::TrustsTheWebhook,
        Self::ForgetsWhatWasServed,
        Self::ForgetsFormerDefaults,
        Self::WritesWhatIsIgnored,
        Self::GoesOnWithoutTheLease,
        Self::TakesTheLeaseEarly,
    ];

    /// The write that is carried out in place of another.
    pub fn change_write(self, write: Write) -> Write {
        match self {
            Self::ProvesNothing => Write { prove: false, ..write },
            Self::DoubtsNothing => Write { doubtful: Vec::new(), decides_again: false, ..write },
            _ => write,
        }
    }

    /// The request that is sent in place of another.
    pub fn change(self, request: Request, object: &dyn Fn() -> Object) -> Request {
        let Request { version, manager, verb, is_to_status, body } = request;
        let changes: Vec<&str> = operations(&body).filter(|op| op["op"] != "move").filter_map(path).collect();
        let moves_owners = changes.contains(&"/metadata/managedFields");
        let changes_nothing = match verb {
            Verb::Apply => body.get("spec").is_none(),
            Verb::Json => {
                changes.iter().all(|path| matches!(*path, "/metadata/uid" | "/metadata/resourceVersion"))
            }
            _ => false,
        };
        let metadata = || {
            let object = object();
            json!({
                "name": object.name(), "uid": object.uid(), "resourceVersion": object.resource_version(),
            })
        };
        let spec = || payload(object().json())["spec"].clone();
        let with_values = |metadata| json!({ "metadata": metadata, "spec": spec() });
        let (verb, body) = match self {
            Self::NamesNoRevision => (verb, without(body, "resourceVersion")),
            Self::NamesNobody if changes_nothing => {
                (Verb::Apply, json!({ "metadata": { "name": object().name() } }))
            }
            Self::AppliesValues if changes_nothing => (Verb::Apply, with_values(metadata())),
            Self::ForcesValues if changes_nothing => {
                (Verb::Force, without(with_values(metadata()), "resourceVersion"))
            }
            Self::PutsBackWhatWasRead if changes_nothing || moves_owners => {
                (Verb::Merge, json!({ "spec": spec() }))
            }
            Self::MarksWhatItWrites if changes_nothing || moves_owners => {
                (Verb::Merge, json!({ "spec": { "note": object().resource_version() } }))
            }
            Self::SendsNoChangedValues if verb == Verb::Json => (verb, without_values(body)),
            Self::LeavesOwnersBehind if moves_owners => (Verb::Merge, json!({ "metadata": metadata() })),
            _ => (verb, body),
        };
        Request { version, manager, verb, is_to_status, body }
    }
}

fn operations(body: &Value) -> impl Iterator<Item = &Value> {
    body.as_array().into_iter().flatten()
}

fn path(operation: &Value) -> Option<&str> {
    operation["path"].as_str()
}

/// A JSON patch that changes nothing but metadata.
fn without_values(mut body: Value) -> Value {
    if let Value::Array(operations) = &mut body {
        operations.retain(|operation| {
            operation["op"] == "move" || path(operation).is_some_and(|path| path.starts_with("/metadata"))
        });
    }
    body
}

/// Whether a request takes an entry out of the owners.
pub fn is_release(body: &Value) -> bool {
    operations(body).any(|operation| operation["op"] == "remove" && operation["path"] != "/spec/size")
}

impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Sabotage {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|sabotage| sabotage.to_string() == name);
        known.ok_or_else(|| {
            let all: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("one of {}", all.join(", "))
        })
    }
}

/// A body without a field of its metadata.
fn without(mut body: Value, field: &str) -> Value {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove(field);
    }
    if let Value::Array(operations) = &mut body {
        operations.retain(|operation| operation["path"] != format!("/metadata/{field}"));
    }
    body
}
