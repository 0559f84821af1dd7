//! Changes of bytes: cut, doubled, exchanged, taken from another input.

use fastrand::Rng;

/// What readers stumble over.
const ODD: &[&[u8]] = &[
    b"null",
    b"-0.0",
    b"1e308",
    b"9223372036854775808",
    b"\"\"",
    b"{}",
    b"[]",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\0",
    b"---\n",
    b"&a [*a]",
    b"<<: ",
    b"!!binary ",
    b"\t",
    b"'\"",
    b"self",
    b"oldSelf",
    b"x-kubernetes-preserve-unknown-fields",
    b"f:a",
    b"k:{\"a\":1}",
    b"v:1",
    b"i:0",
    b"((((((((",
    b"\xc3\xa9\xf0\x9f\x98\x80",
];

/// An input made of those that there are.
pub(super) fn mangled(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = corpus[rng.usize(..corpus.len())].clone();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        let end = at + rng.usize(..=(bytes.len() - at).min(40));
        match rng.u8(..9) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            2 => {
                let odd = ODD[rng.usize(..ODD.len())];
                bytes.splice(at..end, odd.iter().copied());
            }
            3 => {
                let odd = ODD[rng.usize(..ODD.len())];
                bytes.splice(at..at, odd.iter().copied());
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.u8(..);
                }
            }
            5 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.u8(..8);
                }
            }
            6 => bytes.truncate(at),
            7 => {
                let other = &corpus[rng.usize(..corpus.len())];
                let from = rng.usize(..=other.len());
                let to = from + rng.usize(..=(other.len() - from).min(200));
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let open = [b'[', b'{', b'(', b'-'][rng.usize(..4)];
                let many = vec![open; rng.usize(1..3_000)];
                bytes.splice(at..at, many);
            }
        }
    }
    bytes
}
