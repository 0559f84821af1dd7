//! The machine of one CRD under one policy: from its report to a pass over its objects, to the steady state,
//! and to what follows when that ends.
//!
//! ```text
//! start ─> report ─┬─> nothing to do ──────────────────────────────> End(Idle)
//!                  ├─> the schema settles ─────────────────────────> End(Settle)
//!                  └─> permissions ─> server ─> pass ─> steady state
//!                            │          │        │          │
//!                            └──────────┴────────┴──────────┴─> error
//!                                                   ─> End(Wait, Permission, Changed, Idle)
//! ```
//!
//! The machine hands what it has to write about the CRD to its [`Status`](super::status::Status), which works
//! beside all of that. An attempt ends when all of it is written; its findings stay in the
//! [machine](machine::CrdMachine) for the next one.
//!
//! | file | what it decides |
//! |---|---|
//! | [`protocol`] | nothing: the machine's questions and commands, and the answers |
//! | [`machine`] | in which order an attempt continues; `start` up to its pass, `end` what follows it |
//! | `phase` | nothing: how far an attempt has come |
//! | [`task`] | what the CRD and its policy ask for, and what is reported of a pass |
//! | `opening` | whether anything is to be done, by the CRD and its report |
//! | `known` | what is known between two passes |
//! | `settling` | how long a schema stands before objects are written |
//! | `passing` | how a pass begins, what is reported of it, what is recorded at its end |
//! | `steady` | what is done beside the objects that are watched |
//! | `versions` | when objects are listed only to find out at which versions they are stored |
//! | [`checked`] | a CRD as it was read, and what is wrong with its schemas |
//! | [`target`] | what a CRD is reconciled to |
//! | [`error`] | what follows when an attempt cannot continue |
//!
//! How far a canary has come, and whether it holds an attempt, is in [`canary`](super::canary).

pub mod checked;
pub mod error;
mod known;
pub mod machine;
mod opening;
mod passing;
mod phase;
pub mod protocol;
mod settling;
mod steady;
pub mod target;
pub mod task;
mod versions;
