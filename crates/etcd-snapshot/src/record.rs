//! One version of a key, in the protobuf that etcd stores it in.
//!
//! Source: etcd `api/mvccpb/kv.proto`.

/// A key and its value at one revision, borrowed from a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Field numbers of `KeyValue`.
const KEY: u64 = 1;
const VALUE: u64 = 5;

impl<'a> Record<'a> {
    /// Reads a `KeyValue`; `None` if the bytes are not protobuf.
    pub(super) fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut record = Self::default();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            match tag & 7 {
                0 => drop(varint(&mut bytes)?),
                1 => drop(take(&mut bytes, 8)?),
                2 => {
                    let length = varint(&mut bytes)?;
                    let field = take(&mut bytes, length)?;
                    match tag >> 3 {
                        KEY => record.key = field,
                        VALUE => record.value = field,
                        _ => {}
                    }
                }
                5 => drop(take(&mut bytes, 4)?),
                _ => return None,
            }
        }
        Some(record)
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_key_and_value_and_skips_the_rest() {
        let bytes = b"\x0a\x02/a\x10\x96\x01\x18\x07\x20\x01\x2a\x03{1}\x30\x00";
        assert_eq!(Record::read(bytes), Some(Record { key: b"/a", value: b"{1}" }));
        assert_eq!(Record::read(b"\x0a\x01a"), Some(Record { key: b"a", value: b"" }));
        for broken in [&b"\x0a\x05/a"[..], b"\x0a", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0b"]
        {
            assert_eq!(Record::read(broken), None, "{broken:?}");
        }
    }
}
