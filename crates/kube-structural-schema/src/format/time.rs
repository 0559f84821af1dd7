//! Formats of dates and durations.
//! It must not tell the time: nothing is converted, and no zone is looked up.
//!
//! Source: kube-openapi `pkg/validation/strfmt/{date,time,duration}.go` and Go 1.26 `time/format.go`.

use super::is_space;

/// `date`: `2006-01-02`, a day that the calendar has.
pub(super) fn date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (digits(&bytes[..4]), digits(&bytes[5..7]), digits(&bytes[8..]))
    else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn digits(bytes: &[u8]) -> Option<u32> {
    let all = bytes.iter().all(u8::is_ascii_digit);
    all.then(|| bytes.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

/// `datetime` and `date-time`: a date, `T`, a time of day without leap seconds, and a zone.
///
/// The server splits the text at every `T` and never looks at what follows a second one.
pub(super) fn date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(day), Some(clock)) = (parts.next(), parts.next()) else { return false };
    date(day) && time_of_day(clock)
}

fn time_of_day(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let clock = clock.as_bytes();
    if clock[2] != b':' || clock[5] != b':' {
        return false;
    }
    let limits = [(&clock[..2], 23), (&clock[3..5], 59), (&clock[6..], 59)];
    limits.iter().all(|(field, limit)| digits(field).is_some_and(|number| number <= *limit))
        && (is_zone(rest) || is_zone(behind_fraction(rest)))
}

/// What follows a fraction: any one character, for the pattern has a bare dot there, and digits.
fn behind_fraction(text: &str) -> &str {
    let mut rest = text.chars();
    if rest.next().is_none_or(|separator| separator == '\n') {
        return "";
    }
    let fraction = rest.as_str();
    let behind = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
    if behind.len() == fraction.len() { "" } else { behind }
}

/// `Z`, or a sign and hours and minutes of any size.
fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'z' | b'Z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// `duration`: what Go's `time.ParseDuration` takes, or any text with a number and a unit somewhere in it.
pub(super) fn duration(text: &str) -> bool {
    is_go_duration(text) || has_lax_duration(text)
}

/// The largest number of nanoseconds that Go can hold, and one more, which it can hold when negative.
const NANOSECONDS: u64 = 1 << 63;

fn is_go_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return true;
    }
    let mut rest = unsigned;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let Some((nanoseconds, after)) = term(rest) else { return false };
        // Go lets the sum of two largest terms wrap around to nothing.
        total = total.wrapping_add(nanoseconds);
        if total > NANOSECONDS {
            return false;
        }
        rest = after;
    }
    !unsigned.is_empty() && (total < NANOSECONDS || text.starts_with('-'))
}

/// A number with its unit, in nanoseconds, and what follows.
fn term(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = match unit {
        "ns" => 1_u64,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(unit).filter(|nanoseconds| *nanoseconds <= NANOSECONDS)?;
    let nanoseconds = nanoseconds + part_of(fraction, unit);
    (nanoseconds <= NANOSECONDS).then_some((nanoseconds, rest))
}

/// A decimal fraction of a unit, rounded as Go rounds it: digits that do not fit are dropped.
fn part_of(fraction: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1_f64);
    for digit in fraction.bytes() {
        let next = number.checked_mul(10).map(|number| number + u64::from(digit - b'0'));
        match next.filter(|next| number <= (NANOSECONDS - 1) / 10 && *next <= NANOSECONDS) {
            None => break,
            Some(next) => number = next,
        }
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// Whether the text holds digits, perhaps spaces, and a unit. Unknown units and all other text are passed over, and only a
/// number that does not fit spoils it.
fn has_lax_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (number, after) = split_digits(&rest[start..]);
        let unit = after.trim_start_matches(|letter: char| u8::try_from(letter).is_ok_and(is_space));
        let end =
            unit.find(|letter: char| !letter.is_ascii_alphabetic() && letter != 'µ').unwrap_or(unit.len());
        let (unit, behind) = unit.split_at(end);
        if unit.is_empty() {
            rest = after;
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_lax_unit(&unit.to_ascii_lowercase());
        rest = behind;
    }
    found
}

fn is_lax_unit(unit: &str) -> bool {
    matches!(unit, "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" | "hr" | "d" | "w" | "wk")
        || ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"]
            .iter()
            .any(|long| unit.starts_with(long))
}
