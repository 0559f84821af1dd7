//! What must be so where nothing is left to be done: every object stores its defaults, or is named, and what
//! conditions and report state of it is true.

use etch_core::api::ObjectProblem;
use etch_core::condition::Reason;

use super::{Cluster, Violation};
use crate::etcd::{Marks, Resource};
use crate::laws::{self, Law};

impl Cluster {
    pub(super) fn in_the_end(&self, what: &str) -> Violation {
        let wording: Vec<String> = self
            .resources
            .iter()
            .map(|resource| {
                let wording =
                    resource.conditions.iter().find(|condition| condition.r#type == "DefaultsPersisted");
                wording.map_or_else(
                    || "no condition".to_owned(),
                    |wording| format!("{} {}: {}", wording.status, wording.reason, wording.message),
                )
            })
            .collect();
        Violation { law: None, what: format!("{what} ({})", wording.join("; ")) }
    }

    /// What must be so where nothing is left to be done.
    ///
    /// # Errors
    /// It is not so.
    pub fn judge(&self) -> Result<(), Violation> {
        self.resources.iter().try_for_each(|resource| self.judge_resource(resource))
    }

    fn judge_resource(&self, resource: &Resource) -> Result<(), Violation> {
        let wording = resource.conditions.iter().find(|condition| condition.r#type == "DefaultsPersisted");
        let Some(wording) = wording else { return Err(self.in_the_end("a CRD has no condition")) };
        let status = resource.report.as_ref().and_then(|report| report.status.as_ref());
        let has_defaults = resource.crd().gives_defaults();
        let is_held = status.is_some_and(|status| status.counts.held > 0);
        let are_some_skipped = resource.objects.values().any(|live| live.marks != Marks::default());
        if resource.is_to_be_trimmed() && !is_held && !are_some_skipped {
            return Err(self.in_the_end("a version is listed at which no object is stored"));
        }
        if !has_defaults {
            // What would follow is held where a write would destroy a hidden field.
            let waits = is_held && !resource.world.follow.is_empty();
            return match waits || wording.reason == Reason::NoDefaults.as_str() {
                true => Ok(()),
                false => Err(self.in_the_end("a CRD without defaults is not said to be one")),
            };
        }
        if wording.reason == Reason::Paused.as_str() && self.pause.is_none() {
            return Err(self.in_the_end("a CRD is said to be paused"));
        }
        let Some(status) = status else { return Err(self.in_the_end("a CRD has no report")) };
        if status.counts.objects != resource.objects.len() as u64 {
            return Err(self.in_the_end(&format!("there are {} objects", resource.objects.len())));
        }
        for (name, live) in &resource.objects {
            let names = |listed: &[ObjectProblem], count: u64| {
                listed.iter().any(|object| object.name == *name) || count > 50
            };
            let is_rejected =
                resource.are_some_rejected_for_good() && names(&status.rejected, status.counts.rejected);
            let is_skipped = live.marks.is_ignored && names(&status.ignored, status.counts.ignored)
                || live.marks.is_terminating && names(&status.terminating, status.counts.terminating);
            let is_named = names(&status.held, status.counts.held)
                || is_skipped
                || is_rejected && wording.status != "True";
            if !is_named && !resource.release().is_stored(&live.content) {
                let law = Some(if wording.status == "True" { Law::Persisted } else { Law::Undone });
                return Err(Violation {
                    law,
                    what: format!("{name} {:?}; {}", live.content, wording.message),
                });
            }
            if laws::keeps_an_entry(&resource.world, &live.content) && !is_named {
                return Err(Violation {
                    law: Some(Law::Owners),
                    what: format!("{name} keeps an entry of Etch"),
                });
            }
            let last =
                resource.generations.len().checked_sub(2).map(|last| &resource.generations[last].release);
            let stays = last.is_some_and(|last| {
                laws::stays_behind(&resource.world, resource.release(), last, &live.content)
            });
            if stays && !is_named && !self.may_stay && self.is_simple {
                return Err(Violation {
                    law: Some(Law::Follows),
                    what: format!("{name} {:?}", live.content),
                });
            }
        }
        Ok(())
    }
}
