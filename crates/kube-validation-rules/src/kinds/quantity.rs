//! Kubernetes quantities: `500m`, `1.5Gi`, `1e3`.
//! They are only read: no expression writes one.
//!
//! Source: apimachinery `pkg/api/resource/{quantity,amount,suffix}.go`.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use crate::fault::{Fault, Outcome};
use crate::kind::{Kind, downcast};

/// Exponents beyond are refused: such a number would fill the memory, here and on the server.
const MAX_EXPONENT: i32 = 50_000;

/// Nothing smaller than a billionth is kept.
const NANO: i32 = 9;

/// A decimal number: `unscaled / 10^scale`.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    unscaled: BigInt,
    scale: i32,
    /// Whether upstream keeps it in 64 bits; otherwise it is not an integer to upstream, whatever its value.
    small: bool,
    /// Whether it is a sum or a difference. Upstream hands over a pointer to these, and no quantity equals
    /// one.
    is_computed: bool,
}

/// The base and exponent of a suffix.
fn suffix(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "" => (10, 0),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        exponent => {
            let exponent: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (10, exponent)
        }
    })
}

/// Letters of suffixes, perhaps a sign, and digits.
fn has_form_of_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter: char| "eEinumkKMGTP".contains(letter));
    rest.strip_prefix(['-', '+']).unwrap_or(rest).bytes().all(|byte| byte.is_ascii_digit())
}

impl Quantity {
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let malformed = || {
            Fault::new(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            )
        };
        let no_number = || Fault::new("unable to parse numeric part of quantity");
        if text.is_empty() {
            return Err(malformed());
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let stripped = unsigned.trim_start_matches('0');
        if stripped.is_empty() {
            // A sign alone is zero as well.
            return Ok(Self { unscaled: BigInt::ZERO, scale: 0, small: true, is_computed: false });
        }
        let whole_len = stripped.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = stripped.split_at(whole_len);
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", rest),
        };
        // Upstream's number needs a digit somewhere: `.Ki` is refused, `0.Ki` is not.
        let has_digits = unsigned.starts_with(|c: char| c.is_ascii_digit()) || !fraction.is_empty();
        let (base, exponent) =
            suffix(unit).filter(|(_, exponent)| exponent.abs() <= MAX_EXPONENT).ok_or_else(|| {
                if has_form_of_suffix(unit) {
                    Fault::new("unable to parse quantity's suffix")
                } else {
                    malformed()
                }
            })?;
        let digits = [whole, fraction].concat();
        let decimals = i32::try_from(fraction.len()).map_err(|_| malformed())?;
        if let Some(small) = Self::parse_small(&digits, decimals, base, exponent) {
            return Ok(if negative { small.negated() } else { small });
        }
        if !has_digits {
            return Err(no_number());
        }
        let unscaled: BigInt = digits.parse().map_err(|_| no_number())?;
        let exact = if base == 2 {
            Self { unscaled: unscaled << exponent, scale: decimals, small: false, is_computed: false }
        } else {
            Self { unscaled, scale: decimals - exponent, small: false, is_computed: false }
        };
        let mut rounded = exact.rounded_up();
        let largest = Self::from(i64::MAX);
        if base == 2 && rounded.order(&largest).is_gt() {
            rounded = Self { small: false, ..largest };
        }
        Ok(if negative { rounded.negated() } else { rounded })
    }

    /// The form of 64 bits, for numbers of few enough digits.
    fn parse_small(digits: &str, decimals: i32, base: u32, exponent: i32) -> Option<Self> {
        let len = i32::try_from(digits.len()).ok()?;
        let (precision, factor, scale) = if base == 10 {
            (18 - len, 1_i64, exponent - decimals)
        } else if decimals == 0 {
            (15 - len - exponent * 3 / 10 - 1, 1_i64 << exponent, 0)
        } else {
            return None;
        };
        if precision < 0 || scale < -NANO {
            return None;
        }
        let value = digits.parse::<i64>().ok()?.checked_mul(factor)?;
        Some(Self { unscaled: value.into(), scale: -scale, small: true, is_computed: false })
    }

    /// -1, 0 or 1.
    pub(crate) fn sign(&self) -> i64 {
        match self.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        let unscaled = match self.unscaled.to_i64().filter(|_| self.small) {
            // Go negates in 64 bits, where the least number stays as it is.
            Some(number) => number.wrapping_neg().into(),
            None => -&self.unscaled,
        };
        Self { unscaled, ..*self }
    }

    /// In billionths, rounded away from zero.
    fn rounded_up(self) -> Self {
        if self.unscaled.sign() == Sign::NoSign {
            return self;
        }
        if self.scale <= NANO {
            return Self { unscaled: self.at_scale(NANO), scale: NANO, small: false, is_computed: false };
        }
        let unit = power_of_ten(self.scale - NANO);
        let mut unscaled = &self.unscaled / &unit;
        if &unscaled * &unit != self.unscaled {
            unscaled += 1;
        }
        Self { unscaled, scale: NANO, small: false, is_computed: false }
    }

    fn at_scale(&self, scale: i32) -> BigInt {
        &self.unscaled * power_of_ten(scale - self.scale)
    }

    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.at_scale(scale).cmp(&other.at_scale(scale))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        if self.small && other.small {
            if other.unscaled == BigInt::ZERO {
                return Self { is_computed: true, ..self.clone() };
            }
            if self.unscaled == BigInt::ZERO {
                return Self { is_computed: true, ..other.clone() };
            }
        }
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.at_scale(scale), other.at_scale(scale));
        let fits = |number: &BigInt| number.to_i64().is_some();
        let unscaled = &a + &b;
        let small = self.small && other.small && fits(&a) && fits(&b) && fits(&unscaled);
        Self { unscaled, scale, small, is_computed: true }
    }

    /// The value as upstream converts it: a number with decimals is not an integer, even if they are zeros.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        if !self.small || self.scale > 0 {
            return None;
        }
        let value = self.at_scale(0).to_i64()?;
        // Upstream multiplies by tens with a check that the smallest integer fails.
        (self.scale == 0 || value != i64::MIN).then_some(value)
    }

    pub(crate) fn to_f64(&self) -> f64 {
        let base = self.unscaled.to_f64().unwrap_or(f64::NAN);
        if self.scale == 0 { base } else { base * pow10(-self.scale) }
    }
}

impl Kind for Quantity {
    fn type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }

    fn same(&self, other: &dyn Kind) -> Option<bool> {
        let other: &Self = downcast(other)?;
        (!other.is_computed).then(|| self.order(other).is_eq())
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self { unscaled: value.into(), scale: 0, small: true, is_computed: false }
    }
}

fn power_of_ten(exponent: i32) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or_default())
}

/// Go's `math.Pow10`, whose results are the nearest doubles.
fn pow10(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}
