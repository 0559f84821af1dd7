//! Writes the pages of a database of etcd: bbolt's format, as far as this crate reads it. The end-to-end
//! tests write their snapshots with it, too.

pub(crate) const PAGE: usize = 4096;

/// A database of two meta pages, of which the first is the newer one, the root with etcd's bucket, and the
/// bucket's pages, of which the first, with the number 3, is its root.
pub(crate) fn database(bucket: &[Vec<u8>], transaction: u64) -> Vec<u8> {
    let root = [&3_u64.to_le_bytes()[..], &[0; 8]].concat();
    let (root, bucket) = (leaf(2, 1, &[(b"key".to_vec(), root)]), bucket.concat());
    let pages = 3 + bucket.len() / PAGE;
    [meta(0, pages, transaction), meta(1, pages, transaction - 1), root, bucket].concat()
}

fn meta(id: u64, pages: usize, transaction: u64) -> Vec<u8> {
    let mut meta = Vec::new();
    for number in [0xED0C_DAED_u32, 2, PAGE as u32, 0] {
        meta.extend(number.to_le_bytes());
    }
    for number in [2, 0, 0, pages as u64, transaction] {
        meta.extend(u64::to_le_bytes(number));
    }
    let sum = meta.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    meta.extend(sum.to_le_bytes());
    page(id, 4, 0, &meta)
}

fn page(id: u64, flags: u16, count: usize, content: &[u8]) -> Vec<u8> {
    let overflow = (16 + content.len()).div_ceil(PAGE) - 1;
    let mut page = id.to_le_bytes().to_vec();
    page.extend(flags.to_le_bytes());
    page.extend((count as u16).to_le_bytes());
    page.extend((overflow as u32).to_le_bytes());
    page.extend(content);
    page.resize(PAGE * (overflow + 1), 0);
    page
}

/// A page with keys and values, and as many more as they need.
pub(crate) fn leaf(id: u64, flags: u32, elements: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut heads, mut data) = (Vec::new(), Vec::new());
    for (index, (key, value)) in elements.iter().enumerate() {
        let position = (elements.len() - index) * 16 + data.len();
        for number in [flags, position as u32, key.len() as u32, value.len() as u32] {
            heads.extend(number.to_le_bytes());
        }
        data.extend([&key[..], value].concat());
    }
    page(id, 2, elements.len(), &[heads, data].concat())
}

pub(crate) fn branch(id: u64, children: &[u64]) -> Vec<u8> {
    let heads: Vec<u8> = children.iter().flat_map(|child| [[0; 8], child.to_le_bytes()].concat()).collect();
    page(id, 1, children.len(), &heads)
}

/// One write of a key, or its deletion.
pub(crate) fn version(revision: u64, key: &str, value: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let name = [&revision.to_be_bytes()[..], b"_", &[0; 8]].concat();
    let field = |number: u8, text: &str| {
        let (mut field, mut length) = (vec![number << 3 | 2], text.len());
        while length > 127 {
            field.push((length & 127) as u8 | 128);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(text.bytes());
        field
    };
    match value {
        Some(value) => (name, [field(1, key), field(5, value)].concat()),
        None => ([name, b"t".to_vec()].concat(), field(1, key)),
    }
}
