//! Writes that their sender has given up, and that may still arrive.

use etch_core::engine::status;

use crate::etcd::{Clock, Resource, Sent, Server};
use crate::laws::Law;

/// A write whose sender does not wait for it any more.
#[derive(Clone, Debug)]
pub struct Stray {
    /// Which CRD it is about.
    pub resource: usize,
    pub(super) write: StrayWrite,
}

#[derive(Clone, Debug)]
pub(super) enum StrayWrite {
    Object { name: String, sent: Sent },
    Status(status::Command),
}

impl Stray {
    /// Whether it is about the conditions or the report of this CRD.
    pub fn is_of_status(&self, resource: usize) -> bool {
        self.resource == resource && matches!(self.write, StrayWrite::Status(_))
    }

    /// Arrives, long after its sender has given up.
    ///
    /// # Errors
    /// The law that it breaks.
    pub fn arrive(self, resource: &mut Resource, clock: &mut Clock) -> Result<(), Law> {
        match self.write {
            StrayWrite::Object { name, sent } => {
                match resource.process_sent(clock, &name, Server::Current, &sent) {
                    // The same limit.
                    Err(Law::Hidden) if sent.knows != resource.generation() => Ok(()),
                    answer => answer.map(drop),
                }
            }
            StrayWrite::Status(command) => {
                // What is refused has not happened.
                let _ = resource.set_status(&command, clock);
                Ok(())
            }
        }
    }
}
