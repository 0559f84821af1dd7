//! An HTTP proxy between the operator and a real API server that does to chosen requests what networks,
//! proxies and loaded servers do. It sees verbs, resources and names only.

mod proxy;
mod rule;
mod stream;

pub use proxy::{Held, Progress, Proxy, Seen};
pub use rule::{Fault, Rule, Target, Verb};
