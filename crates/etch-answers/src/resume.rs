//! `etch resume`: whether a canary waits to be resumed.

use etch_core::api::{CanaryProgress, CanaryState, Mode};

use crate::policy::Rules;

/// Whether the canary of a CRD at this generation is to be resumed, and the message to print then.
///
/// # Errors
/// Why there is none to resume, in a sentence.
pub fn answer(
    name: &str,
    generation: i64,
    canary: Option<&CanaryProgress>,
    rules: &Rules,
) -> Result<(bool, String), String> {
    let paused = paused(rules);
    let Some(CanaryProgress { generation: known, state, .. }) = canary else {
        return Err(format!(
            "{name}: no canary waits: DefaultsPersisted does not have the reason CanaryWaiting or \
             CanaryRejected{paused}"
        ));
    };
    if *known != generation {
        return Err(format!(
            "the report on {name} is about generation {known}, and the CRD has generation {generation}: wait \
             until Etch has written the canary of this one{paused}"
        ));
    }
    match state {
        CanaryState::Waiting | CanaryState::Rejected => {
            Ok((true, format!("resumed at generation {generation}{paused}")))
        }
        CanaryState::Passed => Ok((false, format!("no canary waits at generation {generation}{paused}"))),
        CanaryState::Running => Err(format!(
            "{name}: the canary still runs: wait until DefaultsPersisted has the reason CanaryWaiting{paused}"
        )),
    }
}

/// That a pause is in force, and how to end it; empty if none is.
fn paused(rules: &Rules) -> String {
    let settings = rules.settings().filter(|settings| settings.mode == Mode::Persist);
    let pause = settings.and_then(|settings| settings.pause.as_ref());
    pause.map(|pause| format!("; {pause} still pauses writes: {}", pause.remedy())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_canary_of_this_generation_that_waits_is_resumed() {
        let of = |generation, state| {
            let canary = CanaryProgress { generation, state, ..CanaryProgress::default() };
            answer("things.example.com", 2, Some(&canary), &Rules::Assumed)
        };
        for state in [CanaryState::Waiting, CanaryState::Rejected] {
            assert_eq!(of(2, state), Ok((true, "resumed at generation 2".to_owned())));
            assert!(of(1, state).is_err_and(|why| why.contains("is about generation 1")));
        }
        assert_eq!(of(2, CanaryState::Passed), Ok((false, "no canary waits at generation 2".to_owned())));
        assert!(of(2, CanaryState::Running).is_err_and(|why| why.contains("the canary still runs")));
        let none = answer("things.example.com", 2, None, &Rules::Assumed);
        assert!(none.is_err_and(|why| why.contains("no canary waits")));
    }
}
