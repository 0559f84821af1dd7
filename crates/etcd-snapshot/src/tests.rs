//! Databases made by hand, whole and damaged. Real snapshots are read in the end-to-end tests.

use super::*;

const PAGE: usize = 4096;

/// Pages 0 and 1 are meta, page 2 is the root with one bucket; the rest is the bucket's.
fn database(pages: Vec<Vec<u8>>, transaction: u64) -> Vec<u8> {
    let meta = |id: u64, transaction: u64| {
        let mut meta = Vec::new();
        meta.extend(0xED0C_DAED_u32.to_le_bytes());
        meta.extend(2_u32.to_le_bytes());
        meta.extend((PAGE as u32).to_le_bytes());
        meta.extend(0_u32.to_le_bytes());
        for number in [2, 0, 0, 0, transaction] {
            meta.extend(u64::to_le_bytes(number));
        }
        let sum = meta.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        meta.extend(sum.to_le_bytes());
        page(id, 4, 0, 0, meta)
    };
    let mut bucket = 3_u64.to_le_bytes().to_vec();
    bucket.extend([0; 8]);
    let mut all =
        vec![meta(0, transaction), meta(1, transaction - 1), leaf(2, 1, &[(b"key".to_vec(), bucket)])];
    all.extend(pages);
    all.concat()
}

fn page(id: u64, flags: u16, count: usize, overflow: u32, content: Vec<u8>) -> Vec<u8> {
    let mut page = id.to_le_bytes().to_vec();
    page.extend(flags.to_le_bytes());
    page.extend((count as u16).to_le_bytes());
    page.extend(overflow.to_le_bytes());
    page.extend(content);
    page.resize(PAGE * (overflow as usize + 1), 0);
    page
}

fn leaf(id: u64, flags: u32, elements: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut heads, mut data) = (Vec::new(), Vec::new());
    for (index, (key, value)) in elements.iter().enumerate() {
        let position = (elements.len() - index) * 16 + data.len();
        for number in [flags, position as u32, key.len() as u32, value.len() as u32] {
            heads.extend(number.to_le_bytes());
        }
        data.extend([&key[..], value].concat());
    }
    let overflow = (16 + heads.len() + data.len()).div_ceil(PAGE) - 1;
    page(id, 2, elements.len(), overflow as u32, [heads, data].concat())
}

fn branch(id: u64, children: &[u64]) -> Vec<u8> {
    let mut heads = Vec::new();
    for child in children {
        heads.extend([0; 8]);
        heads.extend(child.to_le_bytes());
    }
    page(id, 1, children.len(), 0, heads)
}

/// One write of a key, or its deletion.
fn version(revision: u64, key: &str, value: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let mut name = revision.to_be_bytes().to_vec();
    name.push(b'_');
    name.extend([0; 8]);
    let mut record = vec![0x0a, key.len() as u8];
    record.extend(key.bytes());
    match value {
        Some(value) => {
            record.extend([0x2a, (value.len() & 127 | 128) as u8, (value.len() >> 7) as u8]);
            record.extend(value.bytes());
        }
        None => name.push(b't'),
    }
    (name, record)
}

fn saved(mut database: Vec<u8>) -> Vec<u8> {
    let hash = Sha256::digest(&database);
    database.extend(&hash[..]);
    database
}

fn open(bytes: &[u8]) -> Result<Snapshot<Vec<u8>>, SnapshotError> {
    Snapshot::open(bytes.to_vec(), bytes.len() as u64)
}

fn keys(snapshot: &Snapshot<Vec<u8>>) -> Result<Vec<String>, SnapshotError> {
    let mut found = Vec::new();
    snapshot.each(&|key| key.starts_with(b"/registry/"), &mut |key, value| {
        found.push(format!("{} {}", String::from_utf8_lossy(key), value.len()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn history() -> Vec<Vec<u8>> {
    let long = "x".repeat(9_000);
    vec![
        branch(3, &[4, 5]),
        leaf(
            4,
            0,
            &[
                version(2, "/registry/g/tabs/a", Some("old")),
                version(3, "/registry/g/tabs/gone", Some("1")),
                version(4, "/other", Some("1")),
            ],
        ),
        leaf(
            5,
            0,
            &[
                version(5, "/registry/g/tabs/a", Some("newer")),
                version(6, "/registry/g/tabs/gone", None),
                version(7, "/registry/g/tabs/b", Some(&long)),
            ],
        ),
    ]
}

#[test]
fn each_key_is_visited_once_as_it_was_last() {
    let snapshot = open(&saved(database(history(), 9))).expect("a snapshot");
    assert_eq!(keys(&snapshot).expect("whole"), ["/registry/g/tabs/b 9000", "/registry/g/tabs/a 5"]);
}

#[test]
fn the_database_of_a_stopped_member_has_no_hash() {
    assert_eq!(keys(&open(&database(history(), 9)).expect("a database")).expect("whole").len(), 2);
}

#[test]
fn a_changed_or_cut_file_is_refused() {
    let whole = saved(database(history(), 9));
    let mut changed = whole.clone();
    changed[4 * PAGE + 100] ^= 1;
    assert!(matches!(open(&changed), Err(SnapshotError::Changed)));
    let cut = [&whole[..3 * PAGE], &whole[whole.len() - 32..]].concat();
    assert!(matches!(open(&cut), Err(SnapshotError::Changed)));
    for foreign in [&b""[..], b"k8s", &[0; 3 * PAGE]] {
        assert!(matches!(open(foreign), Err(SnapshotError::Foreign(_))));
    }
}

#[test]
fn no_number_in_a_damaged_database_is_followed_blindly() {
    let whole = database(history(), 9);
    let read = |bytes: &[u8]| open(bytes).and_then(|snapshot| keys(&snapshot));
    let damaged = |at: usize, bytes: &[u8]| {
        let mut copy = whole.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        read(&copy)
    };
    let (branch, leaf) = (3 * PAGE, 4 * PAGE);
    let cases: [(&str, usize, &[u8]); 7] = [
        ("a child beyond the end", branch + 24, &u64::MAX.to_le_bytes()),
        ("a child that is its own parent", branch + 24, &3_u64.to_le_bytes()),
        ("more children than fit", branch + 10, &u16::MAX.to_le_bytes()),
        ("overflow beyond the end", leaf + 12, &u32::MAX.to_le_bytes()),
        ("a key beyond the page", leaf + 16 + 4, &u32::MAX.to_le_bytes()),
        ("a value beyond the page", leaf + 16 + 12, &u32::MAX.to_le_bytes()),
        ("no kind of page", leaf + 8, &[0x40, 0]),
    ];
    for (what, at, bytes) in cases {
        assert!(matches!(damaged(at, bytes), Err(SnapshotError::Damaged(_))), "{what}");
    }
    let loops = database(vec![super::tests::branch(3, &[4, 4, 4]), super::tests::branch(4, &[3, 3, 3])], 9);
    assert!(matches!(read(&loops), Err(SnapshotError::Damaged(_))));
    // The newer meta page is broken: the older one is taken, as bbolt does.
    assert!(damaged(16 + 8, &[1]).is_ok());
}
