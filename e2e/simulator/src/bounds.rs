//! How much may happen in what is explored to its end, and what is chosen of that by the environment.

use std::env;

use anyhow::{Context as _, Result, bail};

use super::worlds::{self, World};

/// How much may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Requests of users.
    pub users: u8,
    /// Crashes of the operator.
    pub crashes: u8,
    /// Requests or answers that are lost.
    pub faults: u8,
    /// Upgrades of the CRD.
    pub upgrades: u8,
    /// Requests that a server handles while it lags behind.
    pub behind: u8,
    /// Restores of etcd.
    pub restores: u8,
}

/// The number that a variable gives.
///
/// # Errors
/// It is no number.
pub fn number(name: &str) -> Result<Option<usize>> {
    env::var(name).ok().map(|text| text.parse().context(name.to_owned())).transpose()
}

/// The bounds that `PREFIX_BOUNDS` gives, in the order of the fields; `usual` without it.
///
/// # Errors
/// They are not six numbers.
pub fn bounds(prefix: &str, usual: &[Bounds]) -> Result<Vec<Bounds>> {
    let name = format!("{prefix}_BOUNDS");
    let Ok(text) = env::var(&name) else { return Ok(usual.to_vec()) };
    let numbers: Vec<u8> = text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>()?;
    let [users, crashes, faults, upgrades, behind, restores] = numbers[..] else {
        bail!("{name} is six numbers, not {text:?}");
    };
    Ok(vec![Bounds { users, crashes, faults, upgrades, behind, restores }])
}

/// All worlds in which an object comes to rest, or the one that `PREFIX_WORLD` names.
pub fn chosen_worlds(prefix: &str) -> Vec<World> {
    let mut all = worlds::all();
    // A write that admission refuses is retried forever.
    all.retain(|world| world.admission.is_none());
    if let Ok(name) = env::var(format!("{prefix}_WORLD")) {
        all.retain(|world| world.name == name);
    }
    all
}
