//! The values of constant expressions, as far as they need no more than 128 bits.
//! Without types, Go computes without rounding; what rounds is not computed here.

use serde_json::{Number, Value};

use super::package::{Constant, Package, Packages, Type};
use super::shape::Shape;

/// How many parts an expression may have, those of the constants in it included.
const LARGEST: usize = 300;
/// How many digits behind the point a number may have.
const DECIMALS: usize = 18;
/// The largest whole number from which on a float rounds.
const EXACT: u128 = 1 << 53;

/// The value of a constant.
#[derive(Clone)]
enum Known {
    Text(String),
    Bool(bool),
    Number(Fraction),
}

/// A number.
#[derive(Clone)]
struct Fraction {
    over: i128,
    /// More than 0; 1 for an integer.
    under: i128,
    is_float: bool,
    /// Whether it has a type, to which Go rounds floats.
    is_typed: bool,
}

impl Packages {
    /// The value of a constant; `None` if it is not known.
    pub fn constant(&self, package: &str, name: &str) -> Option<Value> {
        let constant = self.get(package)?.constants.get(name)?;
        self.value(self.get(package)?, constant)
    }

    /// The value of an expression that is written in a package; `None` if it is not known.
    pub(super) fn value(&self, package: &Package, constant: &Constant) -> Option<Value> {
        if let Constant::Literal(value) = constant {
            return Some(value.clone());
        }
        match self.known(package, constant, &mut { LARGEST })? {
            Known::Text(text) => Some(text.into()),
            Known::Bool(flag) => Some(flag.into()),
            Known::Number(number) => number.value().map(Value::Number),
        }
    }

    fn known(&self, package: &Package, constant: &Constant, left: &mut usize) -> Option<Known> {
        *left = left.checked_sub(1)?;
        match constant {
            Constant::Literal(Value::String(text)) => Some(Known::Text(text.clone())),
            Constant::Literal(Value::Bool(flag)) => Some(Known::Bool(*flag)),
            Constant::Literal(Value::Number(number)) => Fraction::of(number).map(Known::Number),
            Constant::Reference(path, name) => {
                let there = self.get(path)?;
                self.known(there, there.constants.get(name)?, left)
            }
            Constant::Typed { kind, value, is_call } => {
                let value = self.known(package, value, left)?;
                self.typed(package, kind, value, *is_call)
            }
            Constant::Unary(operator, operand) => unary(operator, self.known(package, operand, left)?),
            Constant::Binary(operator, first, second) => {
                let (first, second) = (self.known(package, first, left)?, self.known(package, second, left)?);
                binary(operator, first, second)
            }
            Constant::Literal(_) | Constant::Computed => None,
        }
    }

    /// A value as one of a type.
    fn typed(&self, package: &Package, kind: &Type, value: Known, is_call: bool) -> Option<Known> {
        match (self.underlying(package, kind), value) {
            (Shape::Text, Known::Number(number)) if is_call && !number.is_float => {
                let letter = u32::try_from(number.over).ok().and_then(char::from_u32);
                Some(Known::Text(letter.unwrap_or(char::REPLACEMENT_CHARACTER).into()))
            }
            (Shape::Text, value @ Known::Text(_)) | (Shape::Bool, value @ Known::Bool(_)) => Some(value),
            (Shape::Integer(_), Known::Number(number)) if number.under == 1 => {
                Some(Known::Number(Fraction { is_float: false, is_typed: true, ..number }))
            }
            (Shape::Float, Known::Number(number)) => {
                Some(Known::Number(Fraction { is_float: true, is_typed: true, ..number }))
            }
            (Shape::Unknown, value) => {
                let Type::Named(name) = kind else { return None };
                let is_by_dot = || !package.dots.is_empty() && name.name.starts_with(char::is_uppercase);
                let is_elsewhere = name.package != "unsafe" && name.package != package.path || is_by_dot();
                match value {
                    // No function of a package has a constant value, so it is a type: one of texts.
                    Known::Text(_) | Known::Bool(_) if is_elsewhere => Some(value),
                    // It has the type of the declaration, whether that holds integers or floats.
                    Known::Number(number) if is_elsewhere && !is_call => {
                        Some(Known::Number(Fraction { is_float: true, is_typed: true, ..number }))
                    }
                    Known::Text(text) if is_call && name.name == "len" => {
                        let over = i128::try_from(text.len()).ok()?;
                        Some(Known::Number(Fraction { over, under: 1, is_float: false, is_typed: true }))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn unary(operator: &str, value: Known) -> Option<Known> {
    match (operator, value) {
        ("!", Known::Bool(flag)) => Some(Known::Bool(!flag)),
        ("+", value @ Known::Number(_)) => Some(value),
        ("-", Known::Number(number)) => {
            Some(Known::Number(Fraction { over: number.over.checked_neg()?, ..number }))
        }
        // With a type, how many bits there are matters.
        ("^", Known::Number(number)) if !number.is_float && !number.is_typed => {
            Some(Known::Number(Fraction { over: !number.over, ..number }))
        }
        _ => None,
    }
}

fn binary(operator: &str, first: Known, second: Known) -> Option<Known> {
    match (first, second) {
        (Known::Text(first), Known::Text(second)) if operator == "+" => Some(Known::Text(first + &second)),
        (Known::Text(first), Known::Text(second)) => compare(operator, &first, &second),
        (Known::Bool(first), Known::Bool(second)) => match operator {
            "&&" => Some(Known::Bool(first && second)),
            "||" => Some(Known::Bool(first || second)),
            "==" | "!=" => compare(operator, &first, &second),
            _ => None,
        },
        (Known::Number(first), Known::Number(second)) => {
            let scaled = |a: &Fraction, b: &Fraction| a.over.checked_mul(b.under);
            compare(operator, &scaled(&first, &second)?, &scaled(&second, &first)?)
                .or_else(|| first.combine(operator, &second).map(Known::Number))
        }
        _ => None,
    }
}

fn compare<T: PartialOrd>(operator: &str, first: &T, second: &T) -> Option<Known> {
    Some(Known::Bool(match operator {
        "==" => first == second,
        "!=" => first != second,
        "<" => first < second,
        "<=" => first <= second,
        ">" => first > second,
        ">=" => first >= second,
        _ => return None,
    }))
}

impl Fraction {
    fn of(number: &Number) -> Option<Self> {
        let plain = |over| Self { over, under: 1, is_float: false, is_typed: false };
        if let Some(whole) = number.as_i128() {
            return Some(plain(whole));
        }
        // The shortest text of a float has the digits that were written.
        let text = number.as_f64()?.to_string();
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        if decimals.len() > DECIMALS {
            return None;
        }
        let under = 10_i128.pow(u32::try_from(decimals.len()).ok()?);
        let over = format!("{whole}{decimals}").parse().ok()?;
        Some(Self { over, under, is_float: true, is_typed: false }.reduced())
    }

    fn value(&self) -> Option<Number> {
        if !self.is_float {
            return Number::from_i128(self.over);
        }
        let is_exact = |part: i128| part.unsigned_abs() <= EXACT;
        let float =
            (is_exact(self.over) && is_exact(self.under)).then(|| self.over as f64 / self.under as f64);
        float.and_then(Number::from_f64)
    }

    fn combine(&self, operator: &str, other: &Self) -> Option<Self> {
        let is_typed = self.is_typed || other.is_typed;
        if let "<<" | ">>" = operator {
            let by = u32::try_from(other.over).ok().filter(|_| other.under == 1)?;
            let power = 1_i128.checked_shl(by).filter(|power| *power > 0)?;
            let over = if operator == "<<" { self.over.checked_mul(power)? } else { self.over >> by };
            return (!self.is_float).then_some(Self { over, ..self.clone() });
        }
        // A float without a type becomes an integer beside one that has an integer's type.
        let is_integer = |number: &Self| number.is_typed && !number.is_float;
        let is_float = (self.is_float || other.is_float) && !is_integer(self) && !is_integer(other);
        if is_float && is_typed || !is_float && (self.under != 1 || other.under != 1) {
            return None;
        }
        let (a, b) = (self.over, other.over);
        let made = |over, under| Some(Self { over, under, is_float, is_typed });
        let (left, right) = (a.checked_mul(other.under)?, b.checked_mul(self.under)?);
        let under = self.under.checked_mul(other.under)?;
        let made = match operator {
            "+" => made(left.checked_add(right)?, under),
            "-" => made(left.checked_sub(right)?, under),
            "*" => made(a.checked_mul(b)?, under),
            "/" if b == 0 => None,
            "/" if is_float => made(left.checked_mul(right.signum())?, right.checked_abs()?),
            "/" => made(a.checked_div(b)?, 1),
            _ if is_float => None,
            "%" => made(a.checked_rem(b)?, 1),
            "&" => made(a & b, 1),
            "|" => made(a | b, 1),
            "^" => made(a ^ b, 1),
            "&^" => made(a & !b, 1),
            _ => None,
        };
        made.map(Self::reduced)
    }

    fn reduced(self) -> Self {
        let (mut a, mut b) = (self.over.unsigned_abs(), self.under.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        match i128::try_from(a) {
            Ok(common) if common > 1 => Self { over: self.over / common, under: self.under / common, ..self },
            _ => self,
        }
    }
}
