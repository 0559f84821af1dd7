//! The tasks that a replica cannot work without: if one ends, the process ends, because it would miss
//! changes.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// The tasks of one process that are to run until its end.
#[derive(Clone, Debug)]
pub struct Tasks(Arc<watch::Sender<Option<&'static str>>>);

impl Default for Tasks {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Tasks {
    /// Runs `work` as a task. `name` completes the sentence "the task that … has ended".
    pub fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let end = End { name, tasks: self.clone() };
        let work = async move {
            let _end = end;
            work.await;
        };
        tokio::spawn(work.in_current_span())
    }

    /// Waits for the first task to end, also by a panic; returns its name.
    pub async fn ended(&self) -> &'static str {
        let mut first = self.0.subscribe();
        let name = first.wait_for(Option::is_some).await.ok().and_then(|name| *name);
        match name {
            Some(name) => name,
            // The sender is in `self`.
            None => std::future::pending().await,
        }
    }
}

/// Reports that a task has ended: it is dropped together with the task.
struct End {
    name: &'static str,
    tasks: Tasks,
}

impl Drop for End {
    fn drop(&mut self) {
        self.tasks.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(self.name);
            is_first
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn the_first_task_to_end_is_named_whether_it_returns_or_panics() {
        for is_panic in [false, true] {
            let tasks = Tasks::default();
            let (end, ends) = tokio::sync::oneshot::channel::<()>();
            let _runs = tasks.spawn("runs", std::future::pending());
            let _ends = tasks.spawn("ends", async move {
                let _ = ends.await;
                assert!(!is_panic, "as it should in this test");
            });
            assert_eq!(tasks.ended().now_or_never(), None);
            drop(end);
            assert_eq!(tasks.ended().await, "ends");
            assert_eq!(tasks.ended().await, "ends");
        }
    }
}
