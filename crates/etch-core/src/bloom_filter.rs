//! A set of hashes in little room: it may claim one that is not in it, and never denies one that is (a Bloom
//! filter). Its form must not change from release to release: reports outlive releases.

use sha2::{Digest, Sha256};

/// How many bits each member gets as long as there is room: one in 10⁵ that is not a member is taken for
/// one.
const BITS: usize = 24;
/// The least size in bytes: few members cost little anyway.
const LEAST: usize = 32;
/// The most probes.
const PROBES: usize = 16;

/// The set: its first byte is the number of probes, and the others are the bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BloomFilter(Vec<u8>);

impl BloomFilter {
    /// The set of these hashes, in at most `room` bytes; no bytes for the empty set. Where there is little
    /// room for many, more that are not members are taken for some.
    pub fn of(hashes: impl ExactSizeIterator<Item = u64>, room: usize) -> Self {
        let members = hashes.len();
        if members == 0 || room < 2 {
            return Self(Vec::new());
        }
        let bytes = (members * BITS).div_ceil(8).max(LEAST).min(room - 1);
        // ln 2 times the bits of each is the number of probes that errs least.
        let probes = (bytes * 8 * 693 / 1000 / members).clamp(1, PROBES);
        let mut filter = vec![0; bytes + 1];
        filter[0] = u8::try_from(probes).unwrap_or(1);
        for hash in hashes {
            for bit in places(hash, probes, bytes) {
                filter[1 + bit / 8] |= 1 << (bit % 8);
            }
        }
        Self(filter)
    }

    /// A set as it was written.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What is to be written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.len() < 2
    }

    /// Whether a hash is in it, or seems to be.
    pub fn contains(&self, hash: u64) -> bool {
        let Some((probes, bits)) = self.0.split_first().filter(|(_, bits)| !bits.is_empty()) else {
            return false;
        };
        places(hash, usize::from(*probes), bits.len()).all(|bit| bits[bit / 8] & (1 << (bit % 8)) != 0)
    }
}

/// The bits of a hash among those of so many bytes.
fn places(hash: u64, probes: usize, bytes: usize) -> impl Iterator<Item = usize> {
    let bits = bytes as u64 * 8;
    (1..=probes as u64).map(move |probe| (mixed(hash ^ probe.wrapping_mul(GOLDEN)) % bits) as usize)
}

/// 2⁶⁴ divided by the golden ratio: its multiples are far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every bit of the result depends on every bit of the number (the finalizer of SplitMix64, by Sebastiano
/// Vigna).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The hash of a text, the same in every release.
pub fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.iter().take(8);
    first.fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(numbers: std::ops::Range<usize>) -> Vec<u64> {
        numbers.map(|number| hash(&number.to_string())).collect()
    }

    #[test]
    fn every_member_is_in_it_however_little_room_there_is() {
        for (members, room) in [(0, 100), (1, 100), (1000, 16_384), (1000, 100), (100_000, 4096)] {
            let hashes = numbered(0..members);
            let filter = BloomFilter::of(hashes.iter().copied(), room);
            let read = BloomFilter::from_bytes(filter.clone().into_bytes());
            assert!(hashes.iter().all(|hash| read.contains(*hash)));
            assert!(filter.into_bytes().len() <= room);
        }
    }

    #[test]
    fn hardly_anything_else_is_as_long_as_there_is_room() {
        for members in [1, 3, 10, 100, 5000] {
            let filter = BloomFilter::of(numbered(0..members).into_iter(), 16_384);
            let others = numbered(members..members + 100_000).into_iter();
            let wrong = others.filter(|hash| filter.contains(*hash)).count();
            assert!(wrong <= 10, "{wrong} of 100000 beside {members}");
        }
        assert!(!BloomFilter::of([].into_iter(), 100).contains(1));
        assert!(!BloomFilter::from_bytes(vec![7]).contains(1), "a set that was cut is empty");
    }

    #[test]
    fn a_hash_is_the_same_in_every_release() {
        assert_eq!(hash("abc"), 0xba78_16bf_8f01_cfea);
    }
}
