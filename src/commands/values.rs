//! Values of options that need more than a number or a name.

use std::time::Duration;

use clap::{Args, ValueEnum};
use etch_core::pace::limits::PaceMode;
use kube_crd_validation::is_namespace_name;

use super::global::Output;

/// How much of the API server writes may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceArg {
    /// Yield to other clients: send one write at a time, with pauses, and more at once only where writes do
    /// not slow each other down
    #[default]
    Gentle,
    /// Use the full capacity: send fewer writes at once only when the server refuses some
    Fast,
}

impl From<PaceArg> for PaceMode {
    fn from(pace: PaceArg) -> Self {
        match pace {
            PaceArg::Gentle => Self::Gentle,
            PaceArg::Fast => Self::Fast,
        }
    }
}

/// How many objects a table lists by default.
const LIMIT: usize = 10;

/// How many objects are named.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArg {
    /// List at most this many objects of each CRD in a table; 0 lists all. JSON and YAML always list all
    #[arg(long, value_name = "NUMBER", default_value_t = LIMIT)]
    limit: usize,
}

impl LimitArg {
    /// The limit for an output format; `None` if it names all.
    pub(crate) fn of(self, output: Output) -> Option<usize> {
        Some(self.limit).filter(|limit| output == Output::Table && *limit > 0)
    }

    /// The flag as typed; `None` for the default.
    pub(crate) fn word(self) -> Option<String> {
        (self.limit != LIMIT).then(|| format!("--limit={}", self.limit))
    }
}

/// A time, as `settle` of a policy has it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    etch_core::duration::parse(text).map_err(|error| error.to_string())
}

/// How many writes may be under way at once: at least one.
pub(crate) fn in_flight(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=MOST_IN_FLIGHT).contains(&number) => Ok(number),
        _ => Err(format!("expected a number from 1 to {MOST_IN_FLIGHT}")),
    }
}

/// A namespace as it can be called: anything else could be taken for a part of a path.
pub(crate) fn namespace(text: &str) -> Result<String, &'static str> {
    if is_namespace_name(text) { Ok(text.to_owned()) } else { Err("not a valid namespace name") }
}

/// More connections than any API server takes from one client.
const MOST_IN_FLIGHT: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_units() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("10"), Err("expected a time such as 10s, 1m30s, 1h or 1d12h".to_owned()));
    }

    #[test]
    fn a_namespace_is_part_of_a_path() {
        assert_eq!(namespace("etch-system"), Ok("etch-system".to_owned()));
        for wrong in ["", "a b", "../x", "A", "a.b", "-a"] {
            assert!(namespace(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_write_under_way_is_no_number_of_writes() {
        assert_eq!((in_flight("1"), in_flight("10000")), (Ok(1), Ok(10_000)));
        for wrong in ["0", "-1", "", "abc", "10001", "18446744073709551616"] {
            assert!(in_flight(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_table_is_limited() {
        let of = |limit, output| LimitArg { limit }.of(output);
        assert_eq!((of(3, Output::Table), of(0, Output::Table), of(3, Output::Json)), (Some(3), None, None));
    }
}
