//! What the operator is started with.
//! The command reads the environment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use etch_core::pace::limits::PaceMode;

/// What the operator is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a changed schema must stay unchanged before objects are written, if the policy does not set
    /// it.
    pub settle: Duration,
    /// Writes under way at once, at most.
    pub max_in_flight: usize,
    /// Writes begun per second, at most; `None` for no limit.
    pub max_writes_per_second: Option<u32>,
    /// How much of the server writes may take.
    pub pace: PaceMode,
    /// The name of this process in its events.
    pub instance: String,
    /// What time of day it is.
    pub clock: Clock,
    /// Changes when something shows that etcd may have been restored to an earlier state, as
    /// [`Lease::set_back`] does; `None` if nothing does: then each report has to be read for that every few
    /// minutes.
    ///
    /// [`Lease::set_back`]: crate::cluster::Lease::set_back
    pub set_back: Option<watch::Receiver<()>>,
}

/// Waits for a sign of a restore; forever if there is no receiver, or no sender any more.
pub(super) async fn restored(sign: Option<&mut watch::Receiver<()>>) {
    if let Some(sign) = sign
        && sign.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// The time of day, which may be set while this runs: it shows when something was, and never how long
/// something takes.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock of its own, for tests.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The same to the second, as Kubernetes stores it.
    pub(super) fn second(&self) -> Timestamp {
        let now = self.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

impl Default for Clock {
    /// That of the system.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The time of day by the clock of the system, to the second, as Kubernetes stores it.
pub(super) fn now() -> Timestamp {
    Clock::default().second()
}
