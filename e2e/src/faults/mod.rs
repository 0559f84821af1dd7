//! An HTTP proxy between the operator and a real API server that does to chosen requests what networks,
//! proxies and loaded servers do. It must not know what is asked for: it sees verbs, resources and names.

mod proxy;
mod rule;
mod stream;

pub use proxy::{Held, Progress, Proxy, Seen};
pub use rule::{Fault, Rule, Target, Verb};
