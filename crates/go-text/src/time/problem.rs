//! Go's error about a text that is not a time of RFC 3339. Whether it is one, `parse` decides.
//!
//! Source: Go 1.26 `time/format.go`, `Parse` and `ParseError`.

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// What the layout requires, one after another: what stands before each, and how the layout writes it.
const PARTS: [(&[u8], &str); 7] =
    [(b"", "2006"), (b"-", "01"), (b"-", "02"), (b"T", "15"), (b":", "04"), (b":", "05"), (b"", "Z07:00")];

/// Why reading a part ends.
enum Stop {
    /// It is none.
    Bad,
    /// It is too large.
    Range(&'static str),
}

/// The error of `time.Parse(time.RFC3339, text)` for a text that it refuses.
pub fn rfc3339_problem(text: &str) -> String {
    let parsing = format!("parsing time {}", quote(text.as_bytes()));
    let unlike = |rest: &[u8], part: &str| {
        format!(
            "{parsing} as {}: cannot parse {} as {}",
            quote(LAYOUT.as_bytes()),
            quote(rest),
            quote(part.as_bytes())
        )
    };
    let mut rest = text.as_bytes();
    for (before, part) in PARTS {
        let Some(after) = rest.strip_prefix(before) else {
            return unlike(rest, &String::from_utf8_lossy(before));
        };
        match read(after, part) {
            Ok(left) => rest = left,
            Err(Stop::Bad) => return unlike(after, part),
            Err(Stop::Range(what)) => return format!("{parsing}: {what} out of range"),
        }
    }
    if rest.is_empty() {
        return format!("{parsing}: day out of range");
    }
    format!("{parsing}: extra text: {}", quote(rest))
}

/// What follows a part of the layout.
fn read<'t>(text: &'t [u8], part: &str) -> Result<&'t [u8], Stop> {
    let within = |(number, rest): (u32, &'t [u8]), least: u32, most: u32, what: &'static str| {
        if (least..=most).contains(&number) { Ok(rest) } else { Err(Stop::Range(what)) }
    };
    match part {
        "2006" => match text.split_at_checked(4) {
            Some((year, rest)) if year.iter().all(u8::is_ascii_digit) => Ok(rest),
            _ => Err(Stop::Bad),
        },
        "01" => within(number(text, true)?, 1, 12, "month"),
        "02" => number(text, true).map(|(_, rest)| rest),
        "15" => within(number(text, false)?, 0, 23, "hour"),
        "04" => within(number(text, true)?, 0, 59, "minute"),
        "05" => within(number(text, true)?, 0, 59, "second").map(after_fraction),
        _ => zone(text),
    }
}

fn number(text: &[u8], two: bool) -> Result<(u32, &[u8]), Stop> {
    let digit = |index: usize| {
        text.get(index).filter(|byte| byte.is_ascii_digit()).map(|byte| u32::from(byte - b'0'))
    };
    match (digit(0), digit(1)) {
        (Some(tens), Some(ones)) => Ok((10 * tens + ones, &text[2..])),
        (Some(ones), None) if !two => Ok((ones, &text[1..])),
        _ => Err(Stop::Bad),
    }
}

fn after_fraction(text: &[u8]) -> &[u8] {
    let digits = match text {
        [b'.' | b',', digits @ ..] => digits.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    if digits == 0 { text } else { &text[1 + digits..] }
}

fn zone(text: &[u8]) -> Result<&[u8], Stop> {
    if let Some(rest) = text.strip_prefix(b"Z") {
        return Ok(rest);
    }
    let Some(([sign, hours @ .., b':', a, b], rest)) = text.split_at_checked(6) else {
        return Err(Stop::Bad);
    };
    let (hours, minutes) = (number(hours, true), number(&[*a, *b], true).map(|(number, _)| number));
    let hours = hours.map(|(number, _)| number);
    if matches!(hours, Ok(25..)) {
        return Err(Stop::Range("time zone offset hour"));
    }
    if matches!((&hours, &minutes), (Ok(_), Ok(61..))) {
        return Err(Stop::Range("time zone offset minute"));
    }
    match (sign, hours, minutes) {
        (b'+' | b'-', Ok(_), Ok(_)) => Ok(rest),
        _ => Err(Stop::Bad),
    }
}

/// The package's own quoting: what is not ASCII is escaped byte by byte.
fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=0x7F => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_name_the_first_part_that_does_not_fit() {
        let cases = [
            ("y", r#""y" as "2006-01-02T15:04:05Z07:00": cannot parse "y" as "2006""#),
            ("2020-", r#""2020-" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "01""#),
            ("2020-13-01T00:00:00Z", r#""2020-13-01T00:00:00Z": month out of range"#),
            ("2020-02-30T00:00:00Z", r#""2020-02-30T00:00:00Z": day out of range"#),
            ("2020-01-01", r#""2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#),
            (
                "2020-01-01t00:00:00z",
                r#""2020-01-01t00:00:00z" as "2006-01-02T15:04:05Z07:00": cannot parse "t00:00:00z" as "T""#,
            ),
            (
                "2020-01-01T00:00:00",
                r#""2020-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            ("2020-01-01T00:00:00Zé", r#""2020-01-01T00:00:00Z\xc3\xa9": extra text: "\xc3\xa9""#),
            (
                "2020-01-01T00:00:00+25:00",
                r#""2020-01-01T00:00:00+25:00": time zone offset hour out of range"#,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(rfc3339_problem(text), format!("parsing time {expected}"));
        }
    }
}
