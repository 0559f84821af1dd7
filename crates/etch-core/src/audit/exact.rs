//! What the bytes in etcd prove of an object: no default is left unknown. Owners do not count: who wrote a
//! value does not matter once it is there.

use serde_json::{Value, json};

use super::{Missing, State};
use crate::absent::absent;
use crate::crd::Crd;
use crate::decode::{Decoder, Undecodable, View};
use crate::object::{Identity, Object, version_of};
use kube_structural_schema::json::{Json, outline};
use kube_structural_schema::path::{Path, Trail};

/// The state of an object whose bytes are known.
#[derive(Debug)]
pub struct Exact {
    /// The object as it is read.
    pub object: Object,
    /// What etcd does not hold, in order. `Unknown` only where it is unconverted.
    pub missing: Vec<Missing>,
    /// The topmost fields that only etcd holds, in order: a write destroys them (fact W12).
    pub hidden: Vec<Path>,
    /// Whether it is stored at a version that a webhook converts: what the storage version would have is then
    /// not known before it is [`Self::seen`], and places are those of the stored version.
    pub unconverted: bool,
}

impl Exact {
    /// The state of an object whose bytes are nested too deeply: its identity alone.
    pub fn too_deep(identity: &Identity, bytes: &[u8]) -> Self {
        let Identity { namespace, name, uid: _ } = identity;
        let named = || Json::from(json!({ "metadata": { "namespace": namespace, "name": name } }));
        let object = Object::too_deep(outline(bytes).unwrap_or_else(|_| named()));
        Self { object, missing: vec![Missing::anywhere()], hidden: Vec::new(), unconverted: false }
    }

    /// Adds what a server shows of these very bytes at the storage version: the webhook made its answer from
    /// what is stored, and no server fills in what the webhook left open (fact R2).
    pub fn seen(mut self, view: Object, crd: &Crd) -> Self {
        self.missing.retain(|missing| missing.state != State::Unknown);
        crd.compiled().gaps(view.json(), &mut |at: &Trail<'_>, _: &Value| {
            self.missing.push(Missing { path: at.to_path(), state: State::Gap });
        });
        self.missing.sort_by(|a, b| a.path.cmp(&b.path));
        // A default of the stored version may be one of the storage version too, which the webhook left out.
        self.missing.dedup_by(|next, missing| missing.is_also(next));
        Self { object: view, unconverted: false, ..self }
    }
}

/// Looks for the defaults of the storage version in what etcd holds of an object.
///
/// # Errors
/// See [`Undecodable`].
pub fn by_bytes(stored: &Json, crd: &Crd, decoder: &Decoder<'_>) -> Result<Exact, Undecodable> {
    let version = version_of(stored);
    let View { object, hidden } = decoder.view(stored, version)?;
    // Proof::Bytes.
    let mut missing = Vec::new();
    let mut add = |state, path| missing.push(Missing { path, state });
    if crd.names_fields_alike(version) {
        // Whatever a reader sees there and the bytes do not have was filled in, by the defaults of their own
        // version too (fact R2).
        absent(&object, stored, &crd.storage().schema).into_iter().for_each(|path| add(State::Phantom, path));
        crd.compiled().gaps(&object, &mut |at: &Trail<'_>, _: &Value| add(State::Gap, at.to_path()));
    } else if let Some(compiled) = decoder.compiled(version) {
        compiled.gaps(stored, &mut |at: &Trail<'_>, _: &Value| add(State::Phantom, at.to_path()));
        if missing.is_empty() && crd.compiled().has_defaults() {
            missing.push(Missing::anywhere());
        }
    }
    missing.sort_by(|a, b| a.path.cmp(&b.path));
    missing.dedup_by(|next, missing| missing.path.contains(&next.path));
    let unconverted = !crd.names_fields_alike(version);
    Ok(Exact { object: object.into(), missing, hidden, unconverted })
}
