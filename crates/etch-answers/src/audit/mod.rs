//! Which defaults etcd holds, and which are only shown; at which versions it holds objects.

mod audited;
pub mod print;
mod unknown;
pub mod versions;

use etch_core::audit::{Exact, by_bytes};
use etch_core::crd::Crd;
use etch_core::decode::Decoder;
use etch_core::object::Identity;
use etch_core::stored::{Opaque, decode};

pub use audited::{Audited, document, failed};

/// What the bytes in etcd prove of an object.
///
/// # Errors
/// Why they prove nothing.
pub fn known(identity: &Identity, bytes: &[u8], crd: &Crd, decoder: &Decoder<'_>) -> Result<Exact, String> {
    let stored = match decode(bytes) {
        Err(Opaque::TooDeep) => return Ok(Exact::too_deep(identity, bytes)),
        stored => stored.map_err(|opaque| opaque.to_string())?,
    };
    by_bytes(&stored, crd, decoder).map_err(|unreadable| unreadable.to_string())
}
