//! Moments and spans as Go's `time` package reads and writes them.
//!
//! Source: Go 1.26 `time/{format,format_rfc3339,time}.go`.

mod duration;
mod problem;

use std::fmt::Write as _;

pub use duration::parse_duration;
pub use problem::rfc3339_problem;

/// Seconds from 0001-01-01T00:00:00Z, Go's zero time, to 1970.
const ZERO_SECONDS: i64 = -62_135_596_800;
const DAY: i64 = 86_400;

/// A moment, in the zone it was written in.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// What is to be added to them, below 10^9.
    pub nanos: u32,
    /// Seconds east of UTC, for writing it.
    pub offset: i32,
}

/// What a calendar and a clock show at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 and below before the year 1.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 365.
    pub day_of_year: u32,
    /// 0 (Sunday) to 6.
    pub weekday: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
}

impl Time {
    /// The beginning of 1970, in UTC.
    pub const UNIX_EPOCH: Self = Self { seconds: 0, nanos: 0, offset: 0 };

    /// `time.Parse(time.RFC3339, …)`. It takes more than the RFC: an hour of one digit, a comma before the
    /// fraction, and offsets of up to 24 hours and 60 minutes. `None` if Go returns an error.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        parse_date_time(text, parse_fraction, true)
    }

    /// `time.Parse("2006-01-02T15:04:05.000Z07:00", …)` with so many zeros behind the point: that many
    /// characters stand there, of which the first may be a sign.
    pub fn parse_decimals(text: &str, decimals: usize) -> Option<Self> {
        parse_date_time(text, |rest| parse_decimals(rest, decimals), true)
    }

    /// `time.Parse("2006-01-02T15:04:05", …)`, which takes a fraction, too.
    pub fn parse_local(text: &str) -> Option<Self> {
        parse_date_time(text, parse_fraction, false)
    }

    /// `time.Parse("2006-01-02", …)`.
    pub fn parse_date(text: &str) -> Option<Self> {
        let (days, rest) = parse_days(text)?;
        rest.is_empty().then_some(Self { seconds: days * DAY, nanos: 0, offset: 0 })
    }

    /// `IsZero`: whether it is the first moment of the year 1, which stands for none.
    pub fn is_zero(self) -> bool {
        (self.seconds, self.nanos) == (ZERO_SECONDS, 0)
    }

    /// `UTC`: the same moment in the zone of Greenwich.
    pub fn utc(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// `Equal`: whether both are the same moment.
    pub fn same_instant(self, other: Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }

    /// What a calendar shows at so many seconds east of UTC.
    pub fn civil(self, offset: i64) -> Civil {
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

    /// `Format(time.RFC3339)`: in its zone, without fractions of a second.
    pub fn to_rfc3339(self) -> String {
        Self { nanos: 0, ..self }.to_rfc3339_nano()
    }

    /// `Format(time.RFC3339Nano)`: in its zone, with as many digits behind the seconds as are needed.
    pub fn to_rfc3339_nano(self) -> String {
        let Civil { year, month, day, hour, minute, second, .. } = self.civil(i64::from(self.offset));
        let sign = if year < 0 { "-" } else { "" };
        let year = year.unsigned_abs();
        let mut text = format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
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

/// A date and a time of day, then nanoseconds as `fraction` reads them, and perhaps a zone.
fn parse_date_time(text: &str, fraction: impl Fn(&str) -> Option<(u32, &str)>, zone: bool) -> Option<Time> {
    let (days, rest) = parse_days(text)?;
    let rest = rest.strip_prefix('T')?;
    // Go takes an hour of one digit; minutes and seconds need two.
    let hour_len = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (hour, rest) = number(rest, hour_len, 23)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2, 59)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2, 59)?;
    let (nanos, rest) = fraction(rest)?;
    let (offset, rest) = if zone { parse_zone(rest)? } else { (0, rest) };
    if !rest.is_empty() {
        return None;
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(Time { seconds, nanos, offset: i32::try_from(offset).ok()? })
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

/// Nanoseconds; digits beyond the ninth are dropped. A point without digits is left for what follows, which
/// will not take it.
fn parse_fraction(text: &str) -> Option<(u32, &str)> {
    let Some(tail) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let (digits, rest) = tail.split_at(tail.bytes().take_while(u8::is_ascii_digit).count());
    if digits.is_empty() {
        return Some((0, text));
    }
    let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
    Some((nine.parse().ok()?, rest))
}

/// Nanoseconds from a point and so many characters, which Go reads as a number that must not be negative.
fn parse_decimals(text: &str, decimals: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.strip_prefix(['.', ','])?.split_at_checked(decimals)?;
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let value: u32 = digits.parse().ok()?;
    let power = u32::try_from(9_usize.checked_sub(decimals)?).ok()?;
    (value == 0 || !number.starts_with('-')).then_some((value * 10_u32.pow(power), rest))
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

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar, in eras of 400 years that begin in
/// March.
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
    fn every_day_is_read_and_written_alike() {
        let mut before: Option<Time> = None;
        for year in (0..=9999).filter(|year| year % 100 < 5 || year % 400 > 396) {
            for (index, days) in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
                let leap = index == 1 && (year % 400 == 0 || year % 4 == 0 && year % 100 != 0);
                for day in 0..=32 {
                    let text = format!("{year:04}-{:02}-{day:02}T12:34:56Z", index + 1);
                    let valid = day >= 1 && day <= days + i32::from(leap);
                    let time = Time::parse_rfc3339(&text);
                    assert_eq!(time.map(Time::to_rfc3339), valid.then_some(text));
                    if let (Some(before), Some(time)) = (before, time)
                        && (day > 1 || index > 0)
                    {
                        assert_eq!(time.seconds - before.seconds, DAY);
                    }
                    before = time.or(before);
                }
            }
        }
    }

    #[test]
    fn calendars_and_clocks() {
        let time = Time::parse_rfc3339("2024-12-31T23:30:15.5-01:00").expect("a time");
        let civil = time.civil(0);
        assert_eq!((civil.year, civil.month, civil.day), (2025, 1, 1));
        assert_eq!((civil.day_of_year, civil.weekday), (0, 3));
        assert_eq!((civil.hour, civil.minute, civil.second), (0, 30, 15));
        assert_eq!(time.civil(-3600).day_of_year, 365);
    }

    #[test]
    fn offsets_reach_across_years() {
        for (given, utc) in [
            ("2024-01-01T00:30:00+01:00", "2023-12-31T23:30:00Z"),
            ("0000-01-01T00:00:00+00:01", "-0001-12-31T23:59:00Z"),
            ("9999-12-31T23:59:59-24:60", "10000-01-02T00:59:59Z"),
            ("2024-02-29T5:06:07.999-00:00", "2024-02-29T05:06:07Z"),
        ] {
            let written = Time::parse_rfc3339(given).map(|time| time.utc().to_rfc3339());
            assert_eq!(written.as_deref(), Some(utc), "{given}");
        }
    }
}
