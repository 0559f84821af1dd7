//! Handles the signals that end a command: at the first it finishes what is under way, at the second it does
//! not. The command ends itself.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The signals so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// Begin nothing new.
    pub(crate) ended: CancellationToken,
    /// Stop without waiting for requests in flight.
    pub(crate) at_once: CancellationToken,
}

impl Signals {
    /// Receives Ctrl-C and SIGTERM from now on.
    pub(crate) fn install() -> io::Result<Self> {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let signals = Self::default();
        let Self { ended, at_once } = signals.clone();
        tokio::spawn(async move {
            for token in [ended, at_once] {
                tokio::select! {
                    _ = interrupt.recv() => {},
                    _ = terminate.recv() => {},
                }
                token.cancel();
            }
        });
        Ok(signals)
    }
}
