//! Lengths of time as users write them: in flags and in policies, in files and in a cluster. This parser and
//! the schema of `DefaultsPolicy` must accept the same texts.

use std::time::Duration;

/// Why a text is not a length of time; the schema of `DefaultsPolicy` has the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 10s, 1m30s, 1h or 1d12h")]
pub struct NotADuration;

/// What the schema of `DefaultsPolicy` holds a text against.
pub const PATTERN: &str = "^([0-9]{1,5}(ms|s|m|h|d))+$";
/// How long such a text may be.
pub const MAX_LENGTH: usize = 32;
const MOST_DIGITS: usize = 5;

/// Reads `10s`, `1m30s`, `1h`, `1d12h`: numbers of at most five digits, each with a unit.
///
/// # Errors
/// It is not such a text.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    if text.is_empty() || text.len() > MAX_LENGTH {
        return Err(NotADuration);
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest.bytes().skip(digits).take_while(u8::is_ascii_alphabetic).count();
        let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
        let number: u64 = number.parse().map_err(|_| NotADuration)?;
        let millis = match unit {
            _ if digits > MOST_DIGITS => return Err(NotADuration),
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(NotADuration),
        };
        // At most 16 such numbers fit the length.
        sum += Duration::from_millis(number * millis);
        rest = &rest[digits + letters..];
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_summed() {
        for (text, millis) in [
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("24h", 86_400_000),
            ("1d12h", 129_600_000),
            ("1500ms", 1_500),
            ("0s", 0),
            ("30s1m", 90_000),
            ("99999d", 99_999 * 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_the_schema_of_a_policy_refuses_is_refused() {
        let long = "1s".repeat(MAX_LENGTH / 2);
        assert!(parse(&long).is_ok());
        for wrong in [
            "",
            "10",
            "abc",
            "s",
            "-5s",
            "1h 30m",
            "1 h",
            "1.5h",
            "1e9s",
            "100000s",
            "10 parsecs",
            "10min",
            "1H",
            "1w",
            "1y",
            "1sx",
            "x1s",
            "1µs",
            "１s",
            &format!("{long}s"),
            &format!("{long}1s"),
        ] {
            assert_eq!(parse(wrong), Err(NotADuration), "{wrong}");
        }
    }
}
