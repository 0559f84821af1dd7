//! What Etch decides, as pure functions over plain data: which defaults etcd lacks, which write stores them,
//! what the operator reports about it, and what an upgrade of a CRD changes.
//!
//! | module | answers |
//! |---|---|
//! | [`crd`], [`object`] | what a CRD and an object are |
//! | [`decode`], [`deep_object`] | what a reader sees of the bytes in etcd, and of an answer of any depth |
//! | [`etcd`] | where etcd holds objects, what is asked of it, and why it cannot be read |
//! | [`request`], [`read_retries`] | requests to an API server, built and not sent; when one is sent again |
//! | [`pace`] | how many writes may be under way |
//! | [`audit`] | which defaults of an object etcd holds, by its bytes or by its view |
//! | [`stored_versions`] | which versions could go out of `status.storedVersions` |
//! | [`plan`] | what to do about one object, and the requests of its write |
//! | [`impact`], [`upgrade`] | what an upgrade of a CRD does to its objects; whether the guard admits it |
//! | [`object_machine`] | how one object goes from its read to its end, whatever is written |
//! | [`engine`] | the life of one CRD: passes, the steady state, conditions and report |
//! | [`report`] | what is known of a CRD's objects, and its DefaultsReport |
//! | [`policy_index`] | which policy governs which CRD |
//! | [`prediction`], [`obstacle`] | what the operator is going to do, by what it reported |
//! | [`namespaces`], [`scope`] | to which namespaces reads are limited |
//! | [`api`], [`condition`], [`message`], [`event`], [`findings`], [`policy`] | what users read |
//! | [`object_state`], [`refusal`], [`call_error`], [`served_elsewhere`], [`rbac`] | what users read |
//! | [`shell`] | what users paste |

mod absent;
pub mod api;
pub mod audit;
pub mod bloom_filter;
pub mod breakable;
pub mod call_error;
pub mod condition;
pub mod crd;
pub mod decode;
pub mod deep_object;
pub mod described;
mod difference;
pub mod discovery;
pub mod duration;
pub mod engine;
pub mod etcd;
pub mod event;
pub mod field;
pub mod findings;
mod follow_changes;
pub mod impact;
pub mod message;
pub mod namespaces;
pub mod object;
pub mod object_machine;
pub mod object_state;
pub mod obstacle;
pub mod ownership;
pub mod pace;
pub mod patch;
pub mod plan;
pub mod policy;
pub mod policy_index;
pub mod prediction;
pub mod rbac;
pub mod read_retries;
pub mod refusal;
pub mod report;
pub mod request;
pub mod scope;
pub mod selection;
pub mod served_elsewhere;
pub mod shell;
pub mod stored;
pub mod stored_versions;
pub mod upgrade;
pub mod warning;
mod wildcard;
mod without;
pub mod words;
