//! One pass over the objects of a CRD by hand, by the same laws as the operator's.
//! It must not say anything in the cluster: what came of it is the caller's to tell.

use std::sync::Mutex;

use super::changes::Changes;
use super::memory::Memory;
use super::pass::{Interruption, Orders, Sweep, look_at};
use super::tally::Tally;
use super::tend::Tender;
use crate::api::{Counts, Mode, ObjectProblem};
use crate::cluster::{Cluster, Pace};
use crate::domain::crd::Crd;
use crate::domain::plan::{Record, Since, Terms};

/// How often a sweep that wrote something is verified by another, at most.
const VERIFICATIONS: u32 = 3;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Pass<'a> {
    /// The CRD.
    pub crd: &'a Crd,
    /// What writes may do.
    pub terms: Terms,
    /// What is on record: objects that it covers need no request.
    pub record: Record,
    /// The last object, as `namespace/name`, that an interrupted pass has seen to; all up to it are left out.
    pub after: Option<String>,
    /// The limits of writing.
    pub pace: &'a Pace,
}

/// What came of a pass.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// What became of the objects.
    pub counts: Counts,
    /// Whether a last sweep over what was written had nothing to do.
    pub verified: bool,
    /// Objects that were held, refused or could not be seen to; not more than are remembered.
    pub problems: Vec<ObjectProblem>,
}

/// How far a pass has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What became of the objects so far.
    pub counts: Counts,
    /// The object up to which all were seen to, as `namespace/name`.
    pub upto: Option<String>,
    /// Whether what was written is being verified.
    pub verifies: bool,
}

/// Why a pass was not completed. What was done until then is done.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Stopped(#[from] Interruption);

/// Has the defaults of all objects of a CRD stored, and verifies it. `progress` is told of each page.
///
/// # Errors
/// See [`Stopped`]. Objects that are refused or held stop nothing.
pub async fn persist(
    cluster: &Cluster,
    pass: Pass<'_>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Passed, Stopped> {
    let (since, changes) = (Since::default(), Changes::default());
    let tender = Tender {
        cluster,
        pace: pass.pace,
        own_pace: None,
        brake: None,
        crd: pass.crd,
        terms: pass.terms,
        mode: Mode::Persist,
        since: &since,
        changes: &changes,
    };
    let mut memory = Memory { record: pass.record.clone(), ..Memory::default() };
    if pass.after.is_some() {
        // What an earlier pass has seen to counts as stored, whatever its version.
        memory.record = Record { through: Some(u64::MAX), ..Record::default() };
        memory.upto = pass.after;
    }
    let mut last = sweep(tender, &memory, None, &pass.record, progress).await?;
    let through = last.through;
    let mut verified = last.tally.counts().written == 0;
    memory = memory.after(&mut last, through, pass.crd);
    for _ in 0..VERIFICATIONS {
        if verified {
            break;
        }
        let mut again = sweep(tender, &memory, Some(&last), &pass.record, progress).await?;
        verified = again.asked == 0;
        memory = memory.after(&mut again, through, pass.crd);
        last = again;
    }
    let problems = last.tally.troubles().map(|(identity, trouble)| trouble.describe(identity)).collect();
    Ok(Passed { counts: last.tally.counts(), verified, problems })
}

async fn sweep(
    tender: Tender<'_>,
    memory: &Memory,
    earlier: Option<&Sweep>,
    beyond: &Record,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Sweep, Interruption> {
    let tally = Mutex::new(Tally::default());
    let orders = Orders {
        record: &memory.record,
        upto: memory.upto.as_ref(),
        beyond,
        proved: &memory.proved,
        earlier,
        tally: &tally,
        stop_after_rejected: None,
    };
    let mut sweep = Sweep::default();
    loop {
        let more = sweep.page(tender, orders).await?;
        let counts = look_at(&tally).counts();
        progress(Progress { counts, upto: sweep.upto.clone(), verifies: earlier.is_some() });
        if !more {
            break;
        }
    }
    sweep.tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(sweep)
}
