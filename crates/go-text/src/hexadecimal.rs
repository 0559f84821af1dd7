//! Floats in hexadecimal, as `0x1.8p-2`.
//!
//! Source: Go 1.26 `internal/strconv/atof.go`, `readFloat` and `atofHex`.

/// Beyond this every float has run over, or is zero.
const LARGEST_EXPONENT: i64 = 10_000;

/// The float that follows the prefix `0x`, rounded half to even. `None` if that is not the form, or the float
/// is too large for a double.
pub(super) fn parse(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = digits.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = power(exponent)?;
    let (mut bits, mut is_inexact) = (0_u64, false);
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = digit.to_digit(16)?;
        let is_whole = index < whole.len();
        if bits >> 60 == 0 {
            bits = bits << 4 | u64::from(digit);
            exponent -= if is_whole { 0 } else { 4 };
        } else {
            is_inexact |= digit != 0;
            exponent += if is_whole { 4 } else { 0 };
        }
    }
    if bits == 0 {
        return Some(0.0);
    }
    let shift = bits.leading_zeros();
    (bits, exponent) = (bits << shift | u64::from(is_inexact), exponent - i64::from(shift));
    rounded(bits, exponent)
}

/// `bits` times two to the `exponent`, of which the first bit is one, and the last one stands for all that
/// follow.
fn rounded(bits: u64, exponent: i64) -> Option<f64> {
    // A double has 53 bits, and fewer below the least normal one.
    let unit = (exponent + 11).max(-1074);
    let dropped = unit - exponent;
    let kept = if dropped > 64 { 0 } else { (u128::from(bits) >> dropped) as u64 };
    let rest = if dropped > 64 { 1 } else { u128::from(bits) & ((1 << dropped) - 1) };
    let half = if dropped > 64 { u128::MAX } else { 1 << (dropped - 1) };
    let kept = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
    let (kept, unit) = if kept >> 53 == 1 { (kept >> 1, unit + 1) } else { (kept, unit) };
    if kept >> 52 == 0 {
        return Some(f64::from_bits(kept));
    }
    let biased = u64::try_from(unit + 1075).ok().filter(|biased| *biased < 2047)?;
    Some(f64::from_bits(biased << 52 | kept & ((1 << 52) - 1)))
}

fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let power = digits.parse().unwrap_or(i64::MAX).min(LARGEST_EXPONENT);
    Some(if text.starts_with('-') { -power } else { power })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_rounded_half_to_even_also_below_the_least_normal_float() {
        for (text, expected) in [
            ("1p-2", Some(0.25)),
            ("1.8p1", Some(3.0)),
            (".8P+1", Some(1.0)),
            ("0p9", Some(0.0)),
            ("1fffffffffffffp0", Some(9_007_199_254_740_991.0)),
            ("3ffffffffffffep-1", Some(9_007_199_254_740_991.0)),
            ("20000000000001p0", Some(9_007_199_254_740_992.0)),
            ("20000000000001.0000000000001p0", Some(9_007_199_254_740_994.0)),
            ("1p-1074", Some(f64::from_bits(1))),
            ("1p-1075", Some(0.0)),
            ("1.8p-1075", Some(f64::from_bits(1))),
            ("1p-99999999999999999999", Some(0.0)),
            ("1.fffffffffffffp1023", Some(f64::MAX)),
            ("1.fffffffffffff8p1023", None),
            ("1p1024", None),
            ("1", None),
            ("p1", None),
            ("1p", None),
            ("gp1", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
