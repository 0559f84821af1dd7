//! CBOR as API servers store it, read as JSON. What they never write is an error: a break without a
//! beginning, a key that is not text, bytes that are left over.
//!
//! Texts may be byte strings, and binary data is a byte string with a tag that names its form in JSON.
//!
//! Source: RFC 8949; apimachinery `pkg/runtime/serializer/cbor/internal/modes`.

use serde_json::{Map, Number, Value};

use super::opaque::Opaque;
use kube_structural_schema::json::{DEPTH, Json};

/// Reads one document.
///
/// # Errors
/// The bytes are not exactly one, or it is nested too deeply.
pub(super) fn parse(bytes: &[u8]) -> Result<Json, Opaque> {
    let mut reader = Reader { rest: bytes, depth: 0 };
    match reader.value() {
        Some(value) if reader.rest.is_empty() => Ok(value.into()),
        None if reader.depth > DEPTH => Err(Opaque::TooDeep),
        _ => Err(Opaque::Unknown),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    /// How many arrays and maps are open. One more than [`DEPTH`] ends the reading, and stays.
    depth: usize,
}

/// The first byte of an item, taken apart.
struct Head {
    major: u8,
    info: u8,
    /// The argument; none for an item of indefinite length, or a break.
    argument: Option<u64>,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Value> {
        let head = self.head()?;
        self.value_of(head)
    }

    fn value_of(&mut self, head: Head) -> Option<Value> {
        match (head.major, head.argument) {
            (0, Some(number)) => Some(Value::from(number)),
            (1, Some(number)) => match i64::try_from(number) {
                Ok(number) => Some(Value::from(-1 - number)),
                Err(_) => Number::from_f64(-1.0 - number as f64).map(Value::Number),
            },
            (2 | 3, argument) => self.text(head.major, argument).map(Value::String),
            (4, argument) => self.nested(|reader| reader.array(argument)),
            (5, argument) => self.nested(|reader| reader.map(argument)),
            (6, Some(tag)) => self.tagged(tag),
            (7, Some(argument)) => simple(head.info, argument),
            _ => None,
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let value = read(self)?;
        self.depth -= 1;
        Some(value)
    }

    fn head(&mut self) -> Option<Head> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        let (major, info) = (first >> 5, first & 31);
        let argument = match info {
            0..=23 => Some(u64::from(info)),
            24..=27 => {
                let bytes = self.take(1 << (info - 24))?;
                Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            31 => None,
            _ => return None,
        };
        Some(Head { major, info, argument })
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn bytes(&mut self, major: u8, length: Option<u64>) -> Option<Vec<u8>> {
        if let Some(length) = length {
            return Some(self.take(length)?.to_vec());
        }
        let mut all = Vec::new();
        while !self.ends() {
            let head = self.head().filter(|head| head.major == major)?;
            all.extend(self.take(head.argument?)?);
        }
        Some(all)
    }

    fn text(&mut self, major: u8, length: Option<u64>) -> Option<String> {
        String::from_utf8(self.bytes(major, length)?).ok()
    }

    /// Whether a break is next; it is taken.
    fn ends(&mut self) -> bool {
        let rest = self.rest.strip_prefix(&[0xff]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Whether an array or map continues that has so many items, of which `done` were read.
    fn goes_on(&mut self, length: Option<u64>, done: u64) -> bool {
        match length {
            Some(length) => done < length,
            None => !self.ends(),
        }
    }

    fn array(&mut self, length: Option<u64>) -> Option<Value> {
        let mut items = Vec::new();
        while self.goes_on(length, items.len() as u64) {
            items.push(self.value()?);
        }
        Some(Value::Array(items))
    }

    fn map(&mut self, length: Option<u64>) -> Option<Value> {
        let mut fields = Map::new();
        let mut done = 0;
        while self.goes_on(length, done) {
            let head = self.head().filter(|head| matches!(head.major, 2 | 3))?;
            let name = self.text(head.major, head.argument)?;
            fields.insert(name, self.value()?);
            done += 1;
        }
        Some(Value::Object(fields))
    }

    /// A tag determines how bytes are written in JSON; any other is for readers who know it.
    fn tagged(&mut self, tag: u64) -> Option<Value> {
        let head = self.head()?;
        match (tag, head.major) {
            (22, 2) => Some(Value::String(base64(&self.bytes(2, head.argument)?))),
            (23, 2) => {
                let bytes = self.bytes(2, head.argument)?;
                Some(Value::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
            }
            // API servers write no tag of a tag.
            (_, 6) => None,
            _ => self.value_of(head),
        }
    }
}

fn simple(info: u8, argument: u64) -> Option<Value> {
    let float = match info {
        20 => return Some(Value::Bool(false)),
        21 => return Some(Value::Bool(true)),
        22 => return Some(Value::Null),
        25 => half(argument),
        26 => f64::from(f32::from_bits(u32::try_from(argument).ok()?)),
        27 => f64::from_bits(argument),
        _ => return None,
    };
    Number::from_f64(float).map(Value::Number)
}

/// A number of 16 bits: a sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u64) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn base64(bytes: &[u8]) -> String {
    let encoded = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()));
    encoded.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(hex: &str) -> Option<Value> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        parse(&bytes).ok().map(Json::into_inner)
    }

    /// Most are of RFC 8949, appendix A.
    #[test]
    fn every_kind_of_item_has_its_form_in_json() {
        let cases = [
            ("00", json!(0)),
            ("1818", json!(24)),
            ("1903e8", json!(1000)),
            ("1bffffffffffffffff", json!(u64::MAX)),
            ("20", json!(-1)),
            ("3903e7", json!(-1000)),
            ("3b7fffffffffffffff", json!(i64::MIN)),
            ("f93e00", json!(1.5)),
            ("f90001", json!(5.960_464_477_539_063e-8)),
            ("f9c400", json!(-4.0)),
            ("fa47c35000", json!(100_000.0)),
            ("fb3ff199999999999a", json!(1.1)),
            ("f4", json!(false)),
            ("f5", json!(true)),
            ("f6", json!(null)),
            ("6161", json!("a")),
            ("4161", json!("a")),
            ("62c3bc", json!("ü")),
            ("d64401020304", json!("AQIDBA==")),
            ("d7420aff", json!("0aff")),
            ("c06161", json!("a")),
            ("83010203", json!([1, 2, 3])),
            ("9f018202039f0405ffff", json!([1, [2, 3], [4, 5]])),
            ("a2416101416282f5f4", json!({"a": 1, "b": [true, false]})),
            ("bf61610161629f0203ffff", json!({"a": 1, "b": [2, 3]})),
            ("7f657374726561646d696e67ff", json!("streaming")),
        ];
        for (hex, expected) in cases {
            assert_eq!(read(hex), Some(expected), "{hex}");
        }
    }

    #[test]
    fn what_is_broken_is_nothing() {
        for hex in [
            "", "18", "6261", "83", "a1", "a10101", "ff", "9f01", "f97c00", "0000", "1c", "5f6161ff", "61ff",
            "c0c000",
        ] {
            assert_eq!(read(hex), None, "{hex}");
        }
        assert_eq!(parse(&vec![0x81; 1_000_000]).err(), Some(Opaque::TooDeep));
        assert_eq!(parse(b"\x81").err(), Some(Opaque::Unknown));
        // It is longer than what is there.
        assert_eq!(parse(b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff").err(), Some(Opaque::Unknown));
    }
}
