//! Spans of time as Go's `time.ParseDuration` reads them, in nanoseconds.
//! The longest unit is the hour, as in Go.

/// 2^63: one more than the largest number of nanoseconds.
const LIMIT: u64 = 1 << 63;

/// The units and their nanoseconds.
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

/// `time.ParseDuration`: nanoseconds. `None` if Go returns an error.
pub fn parse_duration(text: &str) -> Option<i64> {
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
        // Go lets the sum of two largest parts wrap around to nothing.
        total = total.wrapping_add(part);
        if total > LIMIT {
            return None;
        }
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

/// The digits as a number as far as Go takes them, and what it is to be divided by.
fn leading_fraction(digits: &str) -> (u64, f64) {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale)
}
