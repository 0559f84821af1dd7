//! What Etch does about faults that a real API server will not produce on demand: a server that lives in the
//! test and answers by script, on a clock that stands still until everything waits for it.

mod admission;
mod audit;
mod bounded;
mod canary;
mod certificates;
mod conditions;
mod events;
mod existing;
mod follow;
mod generation;
mod health;
mod heap;
mod keys;
mod lagging;
mod lease;
mod list_watch;
mod lists;
#[allow(unreachable_pub, reason = "shared with e2e, where it is public")]
#[path = "../../e2e/src/logs.rs"]
mod log_lines;
mod logs;
mod object_source;
mod older_crds;
mod operator;
mod pages;
mod pass_status;
mod pause;
mod persist;
mod policies;
mod published;
mod refusals;
mod requests;
mod restarts;
mod restore;
mod secrets;
mod selection;
mod served_elsewhere;
mod server;
mod settling;
mod skipped;
mod stored_versions;
mod tenant;
mod through_status;
mod traces;
mod upgrades;
mod watch_failing;
mod watches;
mod webhooks;
mod world;
mod writes;
