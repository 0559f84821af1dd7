//! Sends the requests of a planned write.
//! The write itself decides which request follows which answer.

use serde::de::Error;
use tokio::time::Instant;

use super::{CallError, Cluster, GenerationCheck};
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Outcome, Request, Step, Terms, Write, WriteMachine};
use etch_core::request::patch;
use etch_core::request::path::named;

impl Cluster {
    /// Performs a write that was planned for `object` as it had been read by `read`, as long as the CRD is
    /// the one that it was planned for. A request that does not check the object's fields is sent only after
    /// a read of the CRD.
    ///
    /// # Errors
    /// If the server could not answer, nothing is known about the write.
    pub async fn perform(
        &self,
        crd: &Crd,
        object: &Object,
        read: Instant,
        write: &Write,
        terms: &Terms,
        check: &GenerationCheck,
    ) -> Result<Outcome, CallError> {
        let path = named(&crd.resource(), object.namespace(), object.name());
        let (mut machine, mut request) = WriteMachine::begin(crd, object, write, terms);
        let outcome = loop {
            let since = if request.keeps_fields { read } else { Instant::now() };
            if !self.is_confirmed(check, since).await? {
                break Ok(Outcome::CrdChanged);
            }
            let step = match self.patched(&path, object.uid(), &request).await {
                Ok(answer) => machine.answered(answer),
                Err(CallError::Refused(refusal)) => machine.refused(*refusal),
                Err(error) => break Err(error),
            };
            match step {
                Step::Send(next) => request = next,
                Step::Done(outcome) => break Ok(outcome),
                Step::Failed(refusal) => break Err(CallError::Refused(Box::new(refusal))),
            }
        };
        if let Ok(Outcome::FieldsDropped { paths }) = &outcome {
            check.note_dropped(object.identity(), paths.clone());
        }
        check.note_unseen(object.identity(), machine.unseen());
        outcome
    }

    /// The object as a patch left it. An answer about anything else counts as none: a proxy may answer with
    /// anything.
    async fn patched(&self, path: &str, uid: &str, request: &Request) -> Result<Object, CallError> {
        let part = if request.to_status { "/status" } else { "" };
        // A test of a JSON patch compares bytes, with the object as Go writes it (fact W23).
        let sent = patch(&format!("{path}{part}"), request.kind, request.body.to_go_vec());
        let answer = Object::from(self.call_for_json(sent).await?);
        match answer.uid() == uid {
            true => Ok(answer),
            false => Err(CallError::malformed(serde_json::Error::custom("another object"))),
        }
    }
}
