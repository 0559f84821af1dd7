//! Spans of time as Go's `time.ParseDuration` and Kubernetes' `duration` format read them, in nanoseconds.
//! It must not know points in time.

const NANOS: f64 = 1e9;
/// 2^63: one more than the largest number of nanoseconds.
const LIMIT: u64 = 1 << 63;

/// The units of [`parse`], the longer spellings first.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The units of [`parse_strfmt`]; of the last spelling of each, every word that begins with it will do.
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

/// `time.ParseDuration`.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (part, tail) = parse_part(rest)?;
        total = total.checked_add(part).filter(|total| *total <= LIMIT)?;
        rest = tail;
    }
    match (negative, i64::try_from(total)) {
        (false, total) => total.ok(),
        (true, Ok(total)) => Some(-total),
        (true, Err(_)) => Some(i64::MIN),
    }
}

/// One number with its unit.
fn parse_part(text: &str) -> Option<(u64, &str)> {
    let whole_len = digits(text);
    let whole = match &text[..whole_len] {
        "" => 0,
        number => number.parse().ok().filter(|number| *number <= LIMIT)?,
    };
    let mut rest = &text[whole_len..];
    let mut fraction = "";
    if let Some(tail) = rest.strip_prefix('.') {
        let fraction_len = digits(tail);
        fraction = &tail[..fraction_len];
        rest = &tail[fraction_len..];
    }
    if whole_len == 0 && fraction.is_empty() {
        return None;
    }
    let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..unit_len])?;
    let mut nanos: u64 = whole.checked_mul(*unit).filter(|nanos| *nanos <= LIMIT)?;
    let (numerator, scale) = leading_fraction(fraction);
    if numerator > 0 {
        // Go's own rounding: the fraction is taken of the unit in floating point and truncated.
        let part = numerator as f64 * (*unit as f64 / scale);
        nanos = nanos.checked_add(part as u64).filter(|nanos| *nanos <= LIMIT)?;
    }
    Some((nanos, &rest[unit_len..]))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The digits as a number as far as they fit, and what it is to be divided by.
fn leading_fraction(digits: &str) -> (u64, f64) {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) else {
            break;
        };
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale)
}

/// `strfmt.ParseDuration`: Go's form, else every number that is followed by a word for a unit, added up.
pub(super) fn parse_strfmt(text: &str) -> Option<i64> {
    if let Some(nanos) = parse(text) {
        return Some(nanos);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number_end = start + digits(&rest[start..]);
        let spaced = rest[number_end..].trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
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

/// Seconds in the shortest decimal form, as `string(duration)` shows them.
pub(super) fn to_text(nanos: i64) -> String {
    format!("{}s", seconds(nanos))
}

fn seconds(nanos: i64) -> f64 {
    (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / NANOS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_reads_them() {
        let cases = [
            ("0", Some(0)),
            ("1s", Some(1_000_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("1h15m30.918s", Some(4_530_918_000_000)),
            (".5m", Some(30_000_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("+5µs", Some(5_000)),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
            ("2562048h", None),
            ("", None),
            ("3", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1s ", None),
            ("-", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_format_takes_words_too() {
        let cases = [
            ("1 day", Some(86_400_000_000_000)),
            ("2 weeks 3min", Some(1_209_780_000_000_000)),
            ("3 HOURS", Some(10_800_000_000_000)),
            ("5 seconds", Some(5_000_000_000)),
            ("7 x", None),
            ("day", None),
            ("99999999999999999999 s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_strfmt(text), expected, "{text:?}");
        }
    }

    #[test]
    fn spans_are_written_in_seconds() {
        assert_eq!(to_text(1_500_000_000), "1.5s");
        assert_eq!(to_text(-3_600_000_000_000), "-3600s");
        assert_eq!(to_text(1), "0.000000001s");
    }
}
