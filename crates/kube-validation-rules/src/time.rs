//! Timestamps and durations as CEL reckons with them, within the bounds that it sets.
//! `go-text` reads and writes them, as Go's `time` does.
//!
//! Source: cel-go `common/types/{timestamp,duration,overflow}.go`.

use go_text::time::Time;

/// Seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of CEL timestamps.
pub(crate) const MIN_SECONDS: i64 = -62_135_596_800;
pub(crate) const MAX_SECONDS: i64 = 253_402_300_799;

const NANOS: i64 = 1_000_000_000;

/// A time plus a span of nanoseconds; `None` if no timestamp is that far.
pub(crate) fn plus(time: Time, nanos: i64) -> Option<Time> {
    let total = i64::from(time.nanos) + nanos.rem_euclid(NANOS);
    let seconds = time.seconds.checked_add(nanos.div_euclid(NANOS))?.checked_add(total.div_euclid(NANOS))?;
    let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
    (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Time { seconds, nanos, ..time })
}

/// The nanoseconds from a time to a later one; `None` if they are too many.
pub(crate) fn between(from: Time, to: Time) -> Option<i64> {
    let seconds = to.seconds.checked_sub(from.seconds)?.checked_mul(NANOS)?;
    seconds.checked_add(i64::from(to.nanos) - i64::from(from.nanos))
}

/// A span in seconds, in the shortest decimal form, as `string(duration)` shows it.
pub(crate) fn span_text(nanos: i64) -> String {
    format!("{}s", (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / NANOS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_bounded() {
        let epoch = Time::UNIX_EPOCH;
        let before = plus(epoch, -1).expect("in range");
        assert_eq!((before.seconds, before.nanos), (-1, 999_999_999));
        assert_eq!(between(before, epoch), Some(1));
        let last = Time { seconds: MAX_SECONDS, ..epoch };
        assert!(plus(last, NANOS).is_none());
        assert!(between(epoch, last).is_none());
    }

    #[test]
    fn spans_are_written_in_seconds() {
        assert_eq!(span_text(1_500_000_000), "1.5s");
        assert_eq!(span_text(-3_600_000_000_000), "-3600s");
        assert_eq!(span_text(1), "0.000000001s");
    }
}
