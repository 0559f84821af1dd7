//! A stop from outside: evaluation is bounded by cost, and a caller may be out of time before.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fault::{Fault, Outcome};

thread_local! {
    /// The flag of what runs on this thread.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs something on this thread so that what it evaluates ends once the flag is set: each expression as if
/// it cost too much. The result is of no use then.
pub fn until_stopped<T>(stop: Arc<AtomicBool>, run: impl FnOnce() -> T) -> T {
    let _outer = Outer(STOP.replace(Some(stop)));
    run()
}

/// Whether the flag of what runs on this thread is set.
pub fn is_stopped() -> bool {
    STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)))
}

/// Goes on with an expression.
///
/// # Errors
/// It is to stop.
pub(super) fn go_on() -> Outcome<()> {
    if is_stopped() { Err(Fault::TooExpensive) } else { Ok(()) }
}

/// Puts back the flag that was there before, also where what runs panics.
struct Outer(Option<Arc<AtomicBool>>);

impl Drop for Outer {
    fn drop(&mut self) {
        STOP.set(self.0.take());
    }
}
