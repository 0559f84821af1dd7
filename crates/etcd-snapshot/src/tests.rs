//! Databases made by hand, whole and damaged. Real snapshots are read in the end-to-end tests.

mod pages;

use super::*;
use pages::{PAGE, branch, database, leaf, version};

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
    let snapshot = open(&saved(database(&history(), 9))).expect("a snapshot");
    assert_eq!(keys(&snapshot).expect("whole"), ["/registry/g/tabs/b 9000", "/registry/g/tabs/a 5"]);
}

#[test]
fn the_database_of_a_stopped_member_has_no_hash() {
    assert_eq!(keys(&open(&database(&history(), 9)).expect("a database")).expect("whole").len(), 2);
}

#[test]
fn a_changed_or_cut_file_is_refused() {
    let whole = saved(database(&history(), 9));
    let mut changed = whole.clone();
    changed[4 * PAGE + 100] ^= 1;
    assert!(matches!(open(&changed), Err(SnapshotError::Changed)));
    let cut = [&whole[..3 * PAGE], &whole[whole.len() - 32..]].concat();
    assert!(matches!(open(&cut), Err(SnapshotError::Cut { .. })));
    let cut_within_a_page = &whole[..whole.len() - 1000];
    assert!(matches!(open(cut_within_a_page), Err(SnapshotError::Cut { .. })));
    for foreign in [&b""[..], b"k8s", &[0; 3 * PAGE]] {
        assert!(matches!(open(foreign), Err(SnapshotError::Foreign(_))));
    }
}

#[test]
fn no_number_in_a_damaged_database_is_followed_blindly() {
    let whole = database(&history(), 9);
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
    let loops = database(&[pages::branch(3, &[4, 4, 4]), pages::branch(4, &[3, 3, 3])], 9);
    assert!(matches!(read(&loops), Err(SnapshotError::Damaged(_))));
    // The newer meta page is broken: the older one is taken, as bbolt does.
    assert!(damaged(16 + 8, &[1]).is_ok());
}
