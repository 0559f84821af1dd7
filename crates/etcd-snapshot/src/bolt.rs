//! The pages of a bbolt database: its newest state, and the elements of a bucket.
//! No number in the file is trusted: each is checked against what is there.
//!
//! Source: bbolt `internal/common/{page,meta,bucket}.go`. Numbers are in little-endian order, as on every
//! machine that etcd is built for.

use std::ops::{ControlFlow, Range};

use crate::source::{ReadAt, SnapshotError};

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const HEADER: usize = 16;
/// A meta page's content, and how much of it the checksum is over.
const META: usize = 64;
const META_SUMMED: usize = 56;
const ELEMENT: usize = 16;
const BUCKET: usize = 16;
const IS_BRANCH: u16 = 0x01;
const IS_LEAF: u16 = 0x02;
const IS_BUCKET: u32 = 0x01;
/// A tree of this depth would hold more elements than any disk.
const DEEPEST: usize = 32;
/// The smallest and the largest page that the operating systems in use have.
const PAGE_SIZES: Range<u64> = 512..(1 << 20) + 1;

/// An opened database at its last transaction.
#[derive(Debug)]
pub(super) struct Database<R> {
    pub(super) source: R,
    page_size: u64,
    /// How many pages the file has.
    pages: u64,
    root: Bucket,
}

/// What a meta page holds about the database.
#[derive(Clone, Copy, Debug)]
struct Meta {
    /// In bytes.
    page_size: u64,
    root: u64,
    /// How many pages have been in use: the file has at least as many.
    pages: u64,
    transaction: u64,
}

/// A tree of elements.
#[derive(Debug)]
pub(super) enum Bucket {
    /// In pages, from this one on.
    Pages(u64),
    /// In one page inside the element that names the bucket.
    Inline(Page),
}

/// A leaf's element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    flags: u32,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// A page with all that belongs to it.
#[derive(Debug)]
pub(super) struct Page(Vec<u8>);

type Visit<'a> = dyn FnMut(Element<'_>) -> Result<ControlFlow<()>, SnapshotError> + 'a;

impl<R: ReadAt> Database<R> {
    /// Finds the last transaction in the first `length` bytes.
    pub(super) fn open(source: R, length: u64) -> Result<Self, SnapshotError> {
        let mut found: Option<Meta> = None;
        // The first meta page is at the beginning, the second a page later, whatever a page is.
        let second = (9..=16).map(|power| 1 << power);
        for at in [0].into_iter().chain(second).filter(|at| at + (HEADER + META) as u64 <= length) {
            let mut bytes = [0; HEADER + META];
            source.read_exact_at(&mut bytes, at)?;
            let meta = Meta::read(&bytes[HEADER..]).filter(|meta| at == 0 || at == meta.page_size);
            found = found.into_iter().chain(meta).max_by_key(|meta| meta.transaction);
        }
        let Meta { page_size, root, pages, .. } =
            found.ok_or(SnapshotError::Foreign("not a bbolt database"))?;
        if !PAGE_SIZES.contains(&page_size) || !page_size.is_power_of_two() {
            return Err(SnapshotError::Damaged("the size of its pages"));
        }
        let written = pages.saturating_mul(page_size);
        if length < written {
            return Err(SnapshotError::Cut { length, written });
        }
        Ok(Self { source, page_size, pages: length / page_size, root: Bucket::Pages(root) })
    }

    /// A bucket of the database by its name; none if there is none.
    pub(super) fn bucket(&self, name: &[u8]) -> Result<Option<Bucket>, SnapshotError> {
        let mut found = None;
        self.each_reversed(&self.root, &mut |element| {
            if element.key != name || element.flags & IS_BUCKET == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let (head, inline) =
                element.value.split_at_checked(BUCKET).ok_or(SnapshotError::Damaged("a bucket"))?;
            found = Some(match u64_at(head, 0) {
                Some(0) => Bucket::Inline(Page(inline.to_vec())),
                Some(root) => Bucket::Pages(root),
                None => return Err(SnapshotError::Damaged("a bucket")),
            });
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Visits the elements of a bucket from the last to the first, until the visitor breaks off.
    pub(super) fn each_reversed(&self, bucket: &Bucket, visit: &mut Visit<'_>) -> Result<(), SnapshotError> {
        // No page belongs to a tree twice, so there cannot be more of them than the file has.
        let mut left = self.pages;
        match bucket {
            Bucket::Pages(root) => self.below(*root, DEEPEST, &mut left, visit),
            Bucket::Inline(page) => page.leaf(visit),
        }
        .map(drop)
    }

    fn below(
        &self,
        id: u64,
        depth: usize,
        left: &mut u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, SnapshotError> {
        let page = self.page(id)?;
        *left = left.checked_sub(1).ok_or(SnapshotError::Damaged("pages that lead to each other"))?;
        match page.flags() {
            IS_LEAF => page.leaf(visit),
            IS_BRANCH if depth > 0 => {
                for index in (0..page.count()).rev() {
                    let child = page.child(index).ok_or(SnapshotError::Damaged("a branch page"))?;
                    if self.below(child, depth - 1, left, visit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            _ => Err(SnapshotError::Damaged("a page that is neither branch nor leaf")),
        }
    }

    fn page(&self, id: u64) -> Result<Page, SnapshotError> {
        const BEYOND: SnapshotError = SnapshotError::Damaged("a page beyond its end");
        if id >= self.pages {
            return Err(BEYOND);
        }
        let mut header = [0; HEADER];
        self.source.read_exact_at(&mut header, id * self.page_size)?;
        let overflow = u64::from(u32_at(&header, 12).unwrap_or_default());
        if u64_at(&header, 0) != Some(id) {
            return Err(SnapshotError::Damaged("a page with the number of another"));
        }
        if overflow >= self.pages - id {
            return Err(BEYOND);
        }
        let length = usize::try_from((overflow + 1) * self.page_size).map_err(|_| BEYOND)?;
        let mut bytes = vec![0; length];
        self.source.read_exact_at(&mut bytes, id * self.page_size)?;
        Ok(Page(bytes))
    }
}

impl Page {
    fn flags(&self) -> u16 {
        u16_at(&self.0, 8).unwrap_or_default()
    }

    fn count(&self) -> usize {
        u16_at(&self.0, 10).unwrap_or_default().into()
    }

    /// The page that an element of a branch leads to.
    fn child(&self, index: usize) -> Option<u64> {
        u64_at(&self.0, HEADER + index * ELEMENT + 8)
    }

    fn leaf(&self, visit: &mut Visit<'_>) -> Result<ControlFlow<()>, SnapshotError> {
        for index in (0..self.count()).rev() {
            let element = self.element(index).ok_or(SnapshotError::Damaged("a leaf page"))?;
            if visit(element)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// An element of a leaf: where its key begins is counted from the element itself, and its value follows
    /// the key.
    fn element(&self, index: usize) -> Option<Element<'_>> {
        let at = HEADER + index * ELEMENT;
        let number = |field: usize| Some(u32_at(&self.0, at + field)? as usize);
        let key = at.checked_add(number(4)?)?;
        let value = key.checked_add(number(8)?)?;
        let end = value.checked_add(number(12)?)?;
        Some(Element {
            flags: u32_at(&self.0, at)?,
            key: self.0.get(key..value)?,
            value: self.0.get(value..end)?,
        })
    }
}

impl Meta {
    /// `None` if these bytes are no meta page's, or were not written in whole.
    fn read(bytes: &[u8]) -> Option<Self> {
        let is_meta = u32_at(bytes, 0)? == MAGIC && u32_at(bytes, 4)? == VERSION;
        let is_whole = u64_at(bytes, META_SUMMED)? == fnv1a(bytes.get(..META_SUMMED)?);
        if !is_meta || !is_whole {
            return None;
        }
        let (root, pages, transaction) = (u64_at(bytes, 16)?, u64_at(bytes, 40)?, u64_at(bytes, 48)?);
        Some(Self { page_size: u32_at(bytes, 8)?.into(), root, pages, transaction })
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
