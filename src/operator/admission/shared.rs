//! What the tasks of admission share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use etch_admission::state::State;

/// What is known of EmbeddedSchemas and their facts.
pub(super) type Shared = Arc<Mutex<State>>;

/// Changes are gathered for this long before the leader acts on them.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(200);
