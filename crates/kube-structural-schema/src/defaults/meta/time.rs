//! Times in metadata, read as Go's `time.Parse(time.RFC3339, …)` reads them and written in UTC, to the second.
//! It must not know about clocks.

/// A moment, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// Seconds since the year 1, in UTC.
    seconds: i64,
    /// Whether there was a fraction of a second as well.
    fraction: bool,
}

const DAY: i64 = 86_400;

impl Time {
    /// Go's own parser is more lenient than the RFC: an hour of one digit, a comma before the fraction, offsets of up to
    /// 24 hours and 60 minutes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.as_bytes();
        let year = number(&mut rest, 4)?;
        let month = literal(&mut rest, b'-').and_then(|()| number(&mut rest, 2))?;
        let day = literal(&mut rest, b'-').and_then(|()| number(&mut rest, 2))?;
        literal(&mut rest, b'T')?;
        let hour_digits = if rest.get(1).is_some_and(u8::is_ascii_digit) { 2 } else { 1 };
        let hour = number(&mut rest, hour_digits)?;
        let minute = literal(&mut rest, b':').and_then(|()| number(&mut rest, 2))?;
        let second = literal(&mut rest, b':').and_then(|()| number(&mut rest, 2))?;
        let fraction = fraction(&mut rest);
        let offset = offset(&mut rest)?;
        let valid = (1..=12).contains(&month)
            && (1..=days_in(month, year)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60
            && rest.is_empty();
        let days =
            days_before_year(year) + (1..month).map(|month| days_in(month, year)).sum::<i64>() + day - 1;
        valid.then(|| Self { seconds: days * DAY + hour * 3600 + minute * 60 + second - offset, fraction })
    }

    /// Whether it is Go's zero time, which stands for none.
    pub(super) fn is_zero(self) -> bool {
        self.seconds == 0 && !self.fraction
    }

    /// The form in which the server stores it.
    pub(super) fn to_text(self) -> String {
        let (mut days, second) = (self.seconds.div_euclid(DAY), self.seconds.rem_euclid(DAY));
        // Never too late, and at most some years too early.
        let mut year = days.div_euclid(366);
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        days -= days_before_year(year);
        let mut month = 1;
        while days >= days_in(month, year) {
            days -= days_in(month, year);
            month += 1;
        }
        let (sign, year) = (if year < 0 { "-" } else { "" }, year.abs());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{sign}{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
    }
}

fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (number, after) = rest.split_at_checked(digits)?;
    *rest = after;
    number.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn literal(rest: &mut &[u8], expected: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[expected])?;
    Some(())
}

/// Skips a fraction; says whether its first nine digits are more than nothing.
fn fraction(rest: &mut &[u8]) -> bool {
    let [b'.' | b',', digits @ ..] = *rest else { return false };
    let length = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
    if length == 0 {
        return false;
    }
    *rest = &digits[length..];
    digits[..length.min(9)].iter().any(|digit| *digit != b'0')
}

fn offset(rest: &mut &[u8]) -> Option<i64> {
    let sign = match rest.split_first()? {
        (b'Z', after) => {
            *rest = after;
            return Some(0);
        }
        (b'+', after) => (after, 1),
        (b'-', after) => (after, -1),
        _ => return None,
    };
    *rest = sign.0;
    let hours = number(rest, 2)?;
    literal(rest, b':')?;
    let minutes = number(rest, 2)?;
    (hours <= 24 && minutes <= 60).then_some(sign.1 * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first of January of the year 1.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_read_and_written_alike() {
        let mut before = None;
        for year in (0..=9999).filter(|year| year % 100 < 5 || year % 400 > 396) {
            for (index, days) in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
                let leap = index == 1 && (year % 400 == 0 || year % 4 == 0 && year % 100 != 0);
                for day in 0..=32 {
                    let text = format!("{year:04}-{:02}-{day:02}T12:34:56Z", index + 1);
                    let valid = day >= 1 && day <= days + i32::from(leap);
                    let time = Time::parse(&text);
                    assert_eq!(time.map(Time::to_text), valid.then_some(text));
                    if let (Some(before), Some(time)) = (before, time)
                        && (day > 1 || index > 0)
                    {
                        assert_eq!(time.seconds - before, DAY);
                    }
                    before = time.map(|time| time.seconds).or(before);
                }
            }
        }
    }

    #[test]
    fn offsets_reach_across_years() {
        for (given, utc) in [
            ("2024-01-01T00:30:00+01:00", "2023-12-31T23:30:00Z"),
            ("2101-01-01T00:30:00+01:00", "2100-12-31T23:30:00Z"),
            ("2023-12-31T23:30:15-01:45", "2024-01-01T01:15:15Z"),
            ("0000-01-01T00:00:00+00:01", "-0001-12-31T23:59:00Z"),
            ("9999-12-31T23:59:59-24:60", "10000-01-02T00:59:59Z"),
            ("2024-02-29T5:06:07.999-00:00", "2024-02-29T05:06:07Z"),
        ] {
            assert_eq!(Time::parse(given).map(Time::to_text).as_deref(), Some(utc), "{given}");
        }
    }

    #[test]
    fn only_the_first_moment_is_zero() {
        for (text, zero) in [
            ("0001-01-01T00:00:00Z", true),
            ("0001-01-01T02:00:00+02:00", true),
            ("0001-01-01T00:00:00.000000000Z", true),
            ("0001-01-01T00:00:00.0000000001Z", true),
            ("0001-01-01T00:00:00.000000001Z", false),
            ("0001-01-01T00:00:01Z", false),
            ("0001-01-02T00:00:00Z", false),
            ("0000-12-31T23:59:59Z", false),
        ] {
            assert_eq!(Time::parse(text).map(Time::is_zero), Some(zero), "{text}");
        }
    }
}
