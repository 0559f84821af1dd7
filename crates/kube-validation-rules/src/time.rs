//! Points in time and spans, as Go's `time` package reads and writes them.
//! It must not read a clock nor know zones by name.

use std::fmt::Write as _;

/// Seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of CEL timestamps.
pub(super) const MIN_SECONDS: i64 = -62_135_596_800;
pub(super) const MAX_SECONDS: i64 = 253_402_300_799;

const NANOS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A point in time, in the zone it was written in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub(super) seconds: i64,
    /// What is to be added to them, below 10^9.
    pub(super) nanos: u32,
    /// Seconds east of UTC, for writing it.
    pub(super) offset: i32,
}

/// The parts of a point in time that a calendar and a clock show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u32,
    /// 1 to 31.
    pub(super) day: u32,
    /// 0 to 365.
    pub(super) day_of_year: u32,
    /// 0 (Sunday) to 6.
    pub(super) weekday: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
}

/// What may follow the seconds in a date and time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fraction {
    Any,
    Digits(usize),
}

impl Timestamp {
    /// `time.Parse(time.RFC3339, …)`.
    pub(super) fn parse_rfc3339(text: &str) -> Option<Self> {
        parse_date_time(text, Fraction::Any, true)
    }

    /// `strfmt.ParseDateTime`: RFC 3339, with or without a zone; nothing at all is 1970.
    pub(super) fn parse_strfmt(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self { seconds: 0, nanos: 0, offset: 0 });
        }
        [
            (Fraction::Digits(6), true),
            (Fraction::Digits(3), true),
            (Fraction::Any, true),
            (Fraction::Any, false),
        ]
        .into_iter()
        .find_map(|(fraction, zone)| parse_date_time(text, fraction, zone))
    }

    /// `time.Parse("2006-01-02", …)`.
    pub(super) fn parse_date(text: &str) -> Option<Self> {
        let (days, rest) = parse_days(text)?;
        rest.is_empty().then_some(Self { seconds: days * DAY, nanos: 0, offset: 0 })
    }

    /// Whether both are the same instant.
    pub(super) fn same_instant(self, other: Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }

    /// This time plus a span of nanoseconds, or none where no timestamp is that far.
    pub(super) fn plus(self, nanos: i64) -> Option<Self> {
        let total = i64::from(self.nanos) + nanos.rem_euclid(NANOS);
        let seconds =
            self.seconds.checked_add(nanos.div_euclid(NANOS))?.checked_add(total.div_euclid(NANOS))?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Self { seconds, nanos, offset: self.offset })
    }

    /// The nanoseconds from another time to this, or none where they are too many.
    pub(super) fn since(self, other: Self) -> Option<i64> {
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// What a calendar shows at so many seconds east of UTC.
    pub(super) fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(DAY);
        let second_of_day = u32::try_from(local.rem_euclid(DAY)).unwrap_or_default();
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            day_of_year: u32::try_from(days - days_from_civil(year, 1, 1)).unwrap_or_default(),
            weekday: u32::try_from((days + 4).rem_euclid(7)).unwrap_or_default(),
            hour: second_of_day / 3600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }

    /// `Format(time.RFC3339Nano)`.
    pub(super) fn to_rfc3339(self) -> String {
        let Civil { year, month, day, hour, minute, second, .. } = self.civil(i64::from(self.offset));
        let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        if self.offset == 0 {
            text.push('Z');
        } else {
            let sign = if self.offset < 0 { '-' } else { '+' };
            let minutes = self.offset.unsigned_abs() / 60;
            // Writing to a string cannot fail.
            let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        text
    }
}

fn parse_date_time(text: &str, fraction: Fraction, zone: bool) -> Option<Timestamp> {
    let (days, rest) = parse_days(text)?;
    let rest = rest.strip_prefix('T')?;
    // Go takes an hour of one digit; minutes and seconds need two.
    let hour_len = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (hour, rest) = number(rest, hour_len, 23)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2, 59)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2, 59)?;
    let (nanos, rest) = parse_fraction(rest, fraction)?;
    let (offset, rest) = if zone { parse_zone(rest)? } else { (0, rest) };
    if !rest.is_empty() {
        return None;
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp { seconds, nanos, offset: i32::try_from(offset).ok()? })
}

/// The days since 1970 of a leading `2006-01-02`.
fn parse_days(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = number(text, 4, 9999)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2, 12)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2, 31)?;
    let month = u32::try_from(month).ok()?;
    let days = days_from_civil(year, month, u32::try_from(day).ok()?);
    let exists = month >= 1 && day >= 1 && civil_from_days(days).1 == month;
    exists.then_some((days, rest))
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize, max: i64) -> Option<(i64, &str)> {
    let (head, rest) = text.split_at_checked(digits)?;
    if head.is_empty() || !head.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value = head.parse().ok()?;
    (value <= max).then_some((value, rest))
}

fn parse_fraction(text: &str, fraction: Fraction) -> Option<(u32, &str)> {
    let digits =
        text.strip_prefix(['.', ',']).map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match fraction {
        // A point without digits is left for what follows, which will not take it.
        Fraction::Any if digits == 0 => Some((0, text)),
        Fraction::Digits(wanted) if digits != wanted || !text.starts_with('.') => None,
        _ => {
            let (head, rest) = text[1..].split_at(digits);
            let nine: String = head.chars().chain("000000000".chars()).take(9).collect();
            Some((nine.parse().ok()?, rest))
        }
    }
}

fn parse_zone(text: &str) -> Option<(i64, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, rest));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = number(text.strip_prefix(['+', '-'])?, 2, 24)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2, 60)?;
    Some((sign * (hours * 3600 + minutes * 60), rest))
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar, in eras of 400 years that begin in March.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = u32::try_from(day_of_year - (153 * month_from_march + 2) / 5 + 1).unwrap_or_default();
    let month =
        u32::try_from(if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 })
            .unwrap_or_default();
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some("1970-01-01T00:00:00Z")),
            ("2020-02-29T23:59:59.120Z", Some("2020-02-29T23:59:59.12Z")),
            ("2021-02-29T00:00:00Z", None),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
            ("2020-01-01T05:00:00+05:30", Some("2020-01-01T05:00:00+05:30")),
            ("2020-01-01T5:00:00Z", Some("2020-01-01T05:00:00Z")),
            ("2020-01-01T05:00:00,5Z", Some("2020-01-01T05:00:00.5Z")),
            ("2020-01-01t05:00:00Z", None),
            ("2020-01-01T05:00:60Z", None),
            ("2020-01-01T24:00:00Z", None),
            ("2020-01-01T05:00:00", None),
            ("2020-01-01T05:00:00.Z", None),
            ("2020-13-01T05:00:00Z", None),
            ("2020-00-01T05:00:00Z", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let read = Timestamp::parse_rfc3339(text).map(Timestamp::to_rfc3339);
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn formats_take_times_without_a_zone_and_nothing() {
        let written = |text| Timestamp::parse_strfmt(text).map(Timestamp::to_rfc3339);
        assert_eq!(written("").as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(written("2020-01-02T03:04:05").as_deref(), Some("2020-01-02T03:04:05Z"));
        assert_eq!(written("2020-01-02"), None);
        assert!(Timestamp::parse_date("2020-01-02").is_some());
        assert!(Timestamp::parse_date("2020-01-02T00:00:00Z").is_none());
    }

    #[test]
    fn calendars_and_clocks() {
        let time = Timestamp::parse_rfc3339("2024-12-31T23:30:15.5-01:00").expect("a time");
        let civil = time.civil(0);
        assert_eq!((civil.year, civil.month, civil.day), (2025, 1, 1));
        assert_eq!((civil.day_of_year, civil.weekday), (0, 3));
        assert_eq!((civil.hour, civil.minute, civil.second), (0, 30, 15));
        assert_eq!(time.civil(-3600).day_of_year, 365);
    }

    #[test]
    fn spans_are_bounded() {
        let epoch = Timestamp { seconds: 0, nanos: 0, offset: 0 };
        let before = epoch.plus(-1).expect("in range");
        assert_eq!((before.seconds, before.nanos), (-1, 999_999_999));
        assert_eq!(epoch.since(before), Some(1));
        let last = Timestamp { seconds: MAX_SECONDS, nanos: 0, offset: 0 };
        assert!(last.plus(NANOS).is_none());
        assert!(last.since(epoch).is_none());
    }
}
