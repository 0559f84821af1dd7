//! What is under way for one CRD, and how it continues.

use std::time::Instant;

use etch_core::engine::Work;
use etch_core::engine::crd::protocol::Question;
use etch_core::engine::status;
use etch_core::engine::sweep::PageRequest;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::Step;
use etch_core::plan;

use super::{Driver, Seen, Surroundings};
use crate::etcd::{Resource, Sent, Server};
use crate::laws::Law;
use crate::server::Refused;

/// What is under way.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Status(status::Command),
    Ask(Question),
    List(PageRequest),
    Admit,
    CheckServer,
    Object(Box<ObjectTask>),
    Read(Identity),
}

impl Task {
    /// Whether nothing that others do matters to what comes of it, nor the other way round.
    fn meets_nothing(&self) -> bool {
        match self {
            Self::Ask(question) => {
                matches!(question, Question::Permissions(..) | Question::Server | Question::Migration)
            }
            Self::Status(command) => matches!(command, status::Command::SetConditions(..)),
            Self::Admit | Self::CheckServer => true,
            Self::Object(task) => {
                matches!(task.work.step, Step::Done(_) | Step::Stop(_) | Step::AskOthers(_))
            }
            Self::List(_) | Self::Read(_) => false,
        }
    }

    /// Whether it reads or writes the report, and nothing else.
    fn is_about_reports(&self) -> bool {
        match self {
            Self::Ask(question) => matches!(question, Question::Report),
            Self::Status(command) => matches!(
                command,
                status::Command::OpenReport | status::Command::SetReport(..) | status::Command::ReadReport
            ),
            _ => false,
        }
    }
}

/// An object on its way.
#[derive(Clone, Debug)]
pub(super) struct ObjectTask {
    pub(super) work: Work<Seen>,
    /// When the object was read.
    pub(super) read: Instant,
    pub(super) write: Option<WriteUnderWay>,
    /// Since when the CRD is known to have been at its generation, where the next request may be sent.
    pub(super) confirmed: Option<Instant>,
}

/// A write: what it was answered so far, and the request that waits for an answer.
#[derive(Clone, Debug)]
pub(super) struct WriteUnderWay {
    pub(super) answers: Vec<Result<Object, Refused>>,
    pub(super) request: plan::Request,
    pub(super) sent: Sent,
}

pub(super) fn object(work: Work<Seen>) -> Task {
    Task::Object(Box::new(ObjectTask { read: work.read, work, write: None, confirmed: None }))
}

impl Driver {
    /// How much is under way, and may be brought by the watch.
    pub fn choices(&self, resource: &Resource) -> usize {
        self.tasks.len() + usize::from(self.can_hear(resource))
    }

    fn can_hear(&self, resource: &Resource) -> bool {
        self.machine.wants_changes()
            && self.watch.as_ref().is_some_and(|watch| {
                let has_news =
                    resource.events.last().is_some_and(|(revision, ..)| *revision > watch.delivered);
                watch.is_expired || has_news || watch.delivered < resource.compacted
            })
    }

    /// Something comes of what is under way, or the watch brings something.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn advance(&mut self, resource: &mut Resource, at: &mut Surroundings<'_>) -> Result<(), Law> {
        let choice = at.dice.roll(self.choices(resource));
        if choice >= self.tasks.len() {
            self.hear(resource, at);
            return Ok(());
        }
        self.advance_task(choice, resource, at)
    }

    fn advance_task(
        &mut self,
        index: usize,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<(), Law> {
        match self.tasks.swap_remove(index) {
            Task::Status(command) => self.write_status(command, resource, at),
            Task::Ask(question) => return self.ask(question, resource, at),
            Task::List(request) => {
                let page = self.page(&request, resource, at);
                self.with_pass(|pass| pass.page(page));
            }
            Task::Admit => {
                let server = self.snapshot.as_ref().map_or(Server::Current, |snapshot| snapshot.server);
                self.with_pass(|pass| pass.admitted(server));
            }
            Task::CheckServer => self.with_pass(|pass| pass.server_checked(Ok(()))),
            Task::Read(identity) => self.read(identity, resource, at),
            Task::Object(task) => return self.advance_object(*task, resource, at),
        }
        Ok(())
    }

    /// Brings on one thing under way that meets nothing else; whether there was one.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn bring_on(
        &mut self,
        with_reports: bool,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<bool, Law> {
        let meets_nothing = |task: &Task| task.meets_nothing() || with_reports && task.is_about_reports();
        let Some(index) = self.tasks.iter().position(meets_nothing) else { return Ok(false) };
        self.advance_task(index, resource, at)?;
        Ok(true)
    }
}
