//! Just enough of the Protocol Buffers wire format to read what is exported, without the code that wrote it.

use anyhow::{Context, Result, bail};

/// A message: its fields in order, by number.
pub(crate) struct Message<'a>(Vec<(u64, Field<'a>)>);

/// A field in its wire format.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads a message that is all of `bytes`.
    pub(crate) fn read(mut bytes: &'a [u8]) -> Result<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)?),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8)?.try_into()?)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?)?;
                    Field::Bytes(take(&mut bytes, length)?)
                }
                5 => Field::Number(u32::from_le_bytes(take(&mut bytes, 4)?.try_into()?).into()),
                other => bail!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Ok(Self(fields))
    }

    /// The messages that a field holds, as many as there are.
    pub(crate) fn messages(&self, number: u64) -> Result<Vec<Self>> {
        self.all(number).map(Self::read).collect()
    }

    /// The bytes of a field; `None` if it is absent.
    pub(crate) fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        self.all(number).next()
    }

    /// The text of a field; empty where it is not there, as the format has it.
    pub(crate) fn text(&self, number: u64) -> Result<String> {
        Ok(std::str::from_utf8(self.bytes(number).unwrap_or_default())?.to_owned())
    }

    /// The number in a field; `None` if it is absent.
    pub(crate) fn number(&self, number: u64) -> Option<u64> {
        self.0.iter().find_map(|(other, field)| match field {
            Field::Number(value) if *other == number => Some(*value),
            _ => None,
        })
    }

    fn all(&self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(other, field)| match field {
            Field::Bytes(bytes) if *other == number => Some(*bytes),
            _ => None,
        })
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("a number without an end")
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length).context("a message that is cut off")?;
    *bytes = rest;
    Ok(taken)
}
