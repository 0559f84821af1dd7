//! A stored value as a document: JSON, or CBOR where that is enabled. A value that is encrypted, or of
//! another form, is reported as such, and not guessed at.

mod cbor;
mod definition;
mod opaque;

pub use definition::definition;
pub use opaque::Opaque;

use kube_structural_schema::json::{Json, JsonError};

/// How the API server marks a value that it has encrypted.
///
/// Source: apiserver `pkg/server/options/encryptionconfig`.
const ENCRYPTED: &[u8] = b"k8s:enc:";
/// How CBOR marks itself; API servers write no CBOR without it.
///
/// Source: apimachinery `pkg/runtime/serializer/cbor`.
const CBOR: &[u8] = b"\xd9\xd9\xf7";

/// Reads a stored value.
///
/// # Errors
/// See [`Opaque`].
pub fn decode(bytes: &[u8]) -> Result<Json, Opaque> {
    if bytes.starts_with(ENCRYPTED) {
        return Err(Opaque::Encrypted);
    }
    match bytes.strip_prefix(CBOR) {
        Some(rest) => cbor::parse(rest),
        None => Json::parse(bytes).map_err(|error| match error {
            JsonError::TooDeep => Opaque::TooDeep,
            JsonError::Malformed(_) => Opaque::Unknown,
        }),
    }
}

#[cfg(test)]
mod tests {
    use kube_structural_schema::json::DEPTH;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(decode(b"k8s:enc:aescbc:v1:key1:xxxx").err(), Some(Opaque::Encrypted));
        assert_eq!(decode(b"k8s\0\n\x0c").err(), Some(Opaque::Unknown));
        assert_eq!(decode(b"").err(), Some(Opaque::Unknown));
        assert_eq!(decode(b"\xd9\xd9\xf7\xa1").err(), Some(Opaque::Unknown));
        for (levels, is_too_deep) in [(DEPTH, false), (DEPTH + 1, true)] {
            let json = ["[".repeat(levels), "]".repeat(levels)].concat();
            assert_eq!(decode(json.as_bytes()).err(), is_too_deep.then_some(Opaque::TooDeep));
            let cbor = [CBOR, &b"\x81".repeat(levels - 1), b"\x80"].concat();
            assert_eq!(decode(&cbor).err(), is_too_deep.then_some(Opaque::TooDeep));
        }
        assert_eq!(*decode(br#"{"a":1}"#).expect("JSON"), serde_json::json!({"a": 1}));
        assert_eq!(*decode(b"\xd9\xd9\xf7\xa1\x41a\x01").expect("CBOR"), serde_json::json!({"a": 1}));
    }
}
