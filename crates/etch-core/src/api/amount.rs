//! A number of objects in a policy: an absolute one, or a percentage.
//! The caller gives the whole that it is a percentage of.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A number of objects, such as `5`, or a percentage of them, such as `1%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many; at least one.
    Objects(u32),
    /// So many in a hundred, from 1 to 100.
    Percent(u32),
}

impl Amount {
    /// How many of `all` objects these are, at least: a part of an object counts as one.
    pub fn of(self, all: u64) -> u64 {
        match self {
            Self::Objects(objects) => objects.into(),
            Self::Percent(percent) => (all * u64::from(percent)).div_ceil(100),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        match text.strip_suffix('%') {
            Some(percent) => number(percent).filter(|percent| (1..=100).contains(percent)).map(Self::Percent),
            None => number(text).filter(|objects| *objects > 0).map(Self::Objects),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(objects) => write!(f, "{objects}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Objects(objects) => serializer.serialize_u32(*objects),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of objects such as 5, or a percentage such as 1%")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                let objects = u32::try_from(number).ok().filter(|objects| *objects > 0);
                let unexpected = || de::Error::invalid_value(de::Unexpected::Unsigned(number), &self);
                objects.map(Amount::Objects).ok_or_else(unexpected)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                self.visit_u64(u64::try_from(number).unwrap_or_default())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                let unexpected = || de::Error::invalid_value(de::Unexpected::Str(text), &self);
                Amount::parse(text).ok_or_else(unexpected)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 10,
            "x-kubernetes-validations": [{
                "rule": "type(self) == int ? self >= 1 && self <= 4294967295 : \
                    self.matches('^([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)$')",
                "message": "expected a number of objects such as 5, or a percentage such as 1%",
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_number_is_a_number_of_objects_and_a_percentage_is_rounded_up() {
        let of =
            |value: Value, all| serde_json::from_value::<Amount>(value).map(|amount| amount.of(all)).ok();
        for (value, all, expected) in [
            (json!(5), 3, Some(5)),
            (json!("5"), 1000, Some(5)),
            (json!("1%"), 0, Some(0)),
            (json!("1%"), 1, Some(1)),
            (json!("1%"), 100, Some(1)),
            (json!("1%"), 101, Some(2)),
            (json!("100%"), 7, Some(7)),
            (json!(0), 7, None),
            (json!(-1), 7, None),
            (json!("0%"), 7, None),
            (json!("101%"), 7, None),
            (json!("+5"), 7, None),
            (json!("%"), 7, None),
            (json!(""), 7, None),
            (json!(1.5), 7, None),
        ] {
            assert_eq!(of(value.clone(), all), expected, "{value} of {all}");
        }
    }

    #[test]
    fn it_is_written_as_it_was_read() {
        for value in [json!(5), json!("1%")] {
            let amount: Amount = serde_json::from_value(value.clone()).expect("an amount");
            assert_eq!(serde_json::to_value(amount).expect("JSON"), value);
        }
    }
}
