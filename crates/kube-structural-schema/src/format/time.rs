//! Formats of dates and durations. No time zone is looked up.
//!
//! Source: kube-openapi `pkg/validation/strfmt/{date,time,duration}.go`.

use super::codes::is_space;
use go_text::time::{self, Time};

/// The units of [`parse_duration`] and their nanoseconds; of the last spelling of each, every word that
/// begins with it will do.
const WORDS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "\u{b5}s", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// `date`: `2006-01-02`, a day that the calendar has.
pub(super) fn date(text: &str) -> bool {
    Time::parse_date(text).is_some()
}

/// `strfmt.ParseDateTime`, which takes more and less than the format `date-time`: the layouts that upstream
/// tries, one after the other; an empty text is 1970. `None` if upstream returns an error.
pub fn parse_date_time(text: &str) -> Option<Time> {
    if text.is_empty() {
        return Some(Time::UNIX_EPOCH);
    }
    Time::parse_decimals(text, 6)
        .or_else(|| Time::parse_decimals(text, 3))
        .or_else(|| Time::parse_rfc3339(text))
        .or_else(|| Time::parse_local(text))
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

/// What follows a fraction: any one character, because the pattern has a bare dot there, and digits.
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

/// `duration`: what [`parse_duration`] takes.
pub(super) fn duration(text: &str) -> bool {
    parse_duration(text).is_some()
}

/// `strfmt.ParseDuration`: Go's form, else every number that is followed by a word for a unit, added up:
/// nanoseconds. `None` if upstream returns an error.
pub fn parse_duration(text: &str) -> Option<i64> {
    if let Some(nanos) = time::parse_duration(text) {
        return Some(nanos);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number_end = start + leading_digits(&rest[start..]);
        let spaced =
            rest[number_end..].trim_start_matches(|letter: char| u8::try_from(letter).is_ok_and(is_space));
        let word_len =
            spaced.find(|c: char| !c.is_ascii_alphabetic() && c != '\u{b5}').unwrap_or(spaced.len());
        if word_len == 0 {
            rest = &rest[number_end..];
            continue;
        }
        let factor: i64 = rest[start..number_end].parse().ok()?;
        let word = spaced[..word_len].to_lowercase();
        for (spellings, unit) in WORDS {
            let (last, exact) = spellings.split_last()?;
            let times =
                usize::from(word.starts_with(last)) + exact.iter().filter(|name| **name == word).count();
            for _ in 0..times {
                found = true;
                total = total.wrapping_add(factor.wrapping_mul(unit));
            }
        }
        rest = &spaced[word_len..];
    }
    found.then_some(total)
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
