//! Sending the requests of a planned write.
//! It must not decide, and must not repeat: the write itself decides which request follows which answer.

use super::call::patch;
use super::read::named;
use super::{CallError, Cluster};
use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::object::Object;
use crate::domain::plan::{Outcome, Request, Step, Terms, Write, WriteMachine};

impl Cluster {
    /// Performs a write that was planned for `object` as it was read.
    ///
    /// # Errors
    /// Where the server could not answer: then nothing is known of the write.
    pub async fn perform(
        &self,
        crd: &Crd,
        object: &Object,
        write: &Write,
        terms: &Terms,
    ) -> Result<Outcome, CallError> {
        let path = named(&crd.resource(), object.namespace(), object.name());
        let (mut machine, mut request) = WriteMachine::begin(crd, object, write, terms);
        loop {
            let step = match self.patched(&path, object.uid(), &request).await {
                Ok(answer) => machine.answered(answer),
                Err(CallError::Refused(refusal)) => machine.refused(*refusal),
                Err(error) => return Err(error),
            };
            match step {
                Step::Send(next) => request = next,
                Step::Done(outcome) => return Ok(outcome),
                Step::Failed(refusal) => return Err(CallError::Refused(Box::new(refusal))),
            }
        }
    }

    /// The object as a patch left it. An answer about anything else is none: a proxy may answer with whatever it likes.
    async fn patched(&self, path: &str, uid: &str, request: &Request) -> Result<Object, CallError> {
        let answer = self.call(patch(path, request.kind, request.body.to_vec())).await?;
        let answer = Json::parse(&answer).map(Object::from).map_err(CallError::malformed)?;
        match answer.uid() == uid {
            true => Ok(answer),
            false => Err(CallError::malformed(serde::de::Error::custom("another object"))),
        }
    }
}
