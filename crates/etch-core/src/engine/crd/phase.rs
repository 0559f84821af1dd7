//! How far an attempt has come.

use std::time::Duration;

use super::error::CrdError;
use super::opening::Opening;
use super::passing::Passing;
use super::protocol::Next;
use super::steady::Steady;

/// How far an attempt has come.
#[derive(Clone, Debug)]
pub(super) enum Phase<H> {
    /// It continues like this as soon as everything is written.
    Writes(Then),
    /// An answer is waited for.
    Asks(Asked),
    /// A pass is under way.
    Passes(Box<Passing<H>>),
    /// The objects are watched.
    Watches(Box<Steady<H>>),
    /// The attempt has ended.
    Over,
}

/// What follows once everything is written.
#[derive(Clone, Debug)]
pub(super) enum Then {
    ReadReport(Box<Opening>),
    /// Objects are about to be written, if the report names the defaults.
    CheckReport,
    CheckPermissions,
    /// The steady state has ended.
    ReportEnd(CrdError, Next),
    End(Next),
}

/// Why something was asked.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// The report is opened.
    Report(Box<Opening>),
    /// At which versions the objects are stored.
    Versions(Box<Opening>),
    /// The schema settles for so long.
    Settling(Duration),
    /// A pass is about to begin.
    Permissions,
    Server,
    Migration,
    /// The CRD's objects are not served.
    WhyNotServed(CrdError),
    /// A write has dropped fields.
    Generation(CrdError),
    /// What has ended the steady state is about to be reported.
    Ended(CrdError, Next),
}
