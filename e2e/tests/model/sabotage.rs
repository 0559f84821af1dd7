//! Which law each sabotage breaks, and where that is found.

use e2e::simulator::bounds::Bounds;
use e2e::simulator::sabotage::Sabotage;

use crate::laws::Law;

/// All of them, with the law that each breaks, and where: the world, and what may happen in it.
pub(crate) const ALL: [(Sabotage, Law, &str, Bounds); 22] = {
    const LAGS: Bounds = Bounds { users: 1, crashes: 0, faults: 0, upgrades: 2, behind: 2, restores: 0 };
    const FAILS: Bounds = Bounds { users: 1, crashes: 1, faults: 1, upgrades: 1, behind: 0, restores: 0 };
    const CRASHES: Bounds = Bounds { users: 1, crashes: 1, faults: 0, upgrades: 3, behind: 0, restores: 0 };
    const RETURNS: Bounds = Bounds { users: 1, crashes: 0, faults: 0, upgrades: 3, behind: 0, restores: 0 };
    const QUIET: Bounds = Bounds { users: 1, crashes: 0, faults: 0, upgrades: 2, behind: 0, restores: 0 };
    [
        (Sabotage::NamesNoRevision, Law::Race, "introduced", QUIET),
        (Sabotage::NamesNobody, Law::Creates, "changing", QUIET),
        (Sabotage::CreatesWhatIsGone, Law::Creates, "changing", QUIET),
        (Sabotage::AppliesValues, Law::Owners, "changing", QUIET),
        (Sabotage::ForcesValues, Law::Values, "changing", QUIET),
        (Sabotage::PutsBackWhatWasRead, Law::Values, "changing", QUIET),
        (Sabotage::FollowsWhatIsOwned, Law::Values, "following", QUIET),
        (Sabotage::LeavesOwnersBehind, Law::Owners, "introduced, up to 1.36", QUIET),
        (Sabotage::EndsWithARewrite, Law::Follows, "following", CRASHES),
        (Sabotage::LeavesItsEntry, Law::Owners, "following", QUIET),
        (Sabotage::IgnoresHiddenFields, Law::Hidden, "hiding", QUIET),
        (Sabotage::ProvesNothing, Law::Persisted, "introduced", QUIET),
        (Sabotage::BelievesEveryAnswer, Law::Persisted, "changing", LAGS),
        (Sabotage::RemembersTooMuch, Law::Persisted, "removed", QUIET),
        (Sabotage::SendsNoChangedValues, Law::Values, "changing", LAGS),
        (Sabotage::DoubtsNothing, Law::Values, "changing beside another", LAGS),
        (Sabotage::VerifiesNothing, Law::Persisted, "changing", LAGS),
        (Sabotage::RecordsAhead, Law::Persisted, "changing", FAILS),
        (Sabotage::RecordsWhatIsOver, Law::Persisted, "changing", RETURNS),
        (Sabotage::BelievesInSilence, Law::Persisted, "changing", FAILS),
        (Sabotage::MarksWhatItWrites, Law::Idempotence, "changing", QUIET),
        (Sabotage::HearsNothing, Law::Undone, "introduced", QUIET),
    ]
};
