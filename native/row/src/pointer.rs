//! Rows of many partitions in shared pages, and pointers to them that are sorted by partition.

use crate::error::RowError;
use crate::row::{Span, UnsafeRowRef};

/// Where a row lies and which partition it belongs to, as the JVM packs it into 8 bytes.
///
/// ```text
///  63        40 39     27 26          0
/// +------------+---------+-------------+
/// | partition  |  page   |   offset    |   of the row's length in the page, in bytes
/// +------------+---------+-------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct RowPointer(u64);

/// A page with rows: its address, and how many of its bytes are readable.
pub type RowPage = (*const u8, usize);

const PARTITION_SHIFT: u32 = 40;
const PAGE_SHIFT: u32 = 27;
const PAGE_MASK: u64 = (1 << 13) - 1;
const OFFSET_MASK: u64 = (1 << PAGE_SHIFT) - 1;

/// The bytes of the length in front of each row.
const HEADER: usize = size_of::<u32>();

/// Counters of a pass fit a first-level cache.
const MAX_DIGIT_BITS: u32 = 11;

impl RowPointer {
    /// The most partitions that pointers tell apart.
    pub const MAX_PARTITIONS: u32 = 1 << 24;

    /// Packs a pointer, unless a part needs more than its 24, 13 and 27 bits.
    pub fn new(partition: u32, page: usize, offset: usize) -> Option<Self> {
        let (page, offset) = (u64::try_from(page).ok()?, u64::try_from(offset).ok()?);
        let fits = partition < Self::MAX_PARTITIONS && page <= PAGE_MASK && offset <= OFFSET_MASK;
        fits.then_some(Self(
            u64::from(partition) << PARTITION_SHIFT | page << PAGE_SHIFT | offset,
        ))
    }

    /// The partition of the row.
    pub fn partition(self) -> u32 {
        u32::try_from(self.0 >> PARTITION_SHIFT).unwrap_or(u32::MAX)
    }

    /// Where the row lies: pointers to rows that lie one after the other ascend.
    pub(crate) fn place(self) -> u64 {
        self.0 & ((1 << PARTITION_SHIFT) - 1)
    }

    /// Finds the row.
    ///
    /// # Errors
    ///
    /// [`RowError::Page`] if it doesn't lie in one of `pages`.
    ///
    /// # Safety
    ///
    /// The pages must be readable, and stay as [`UnsafeRowRef::from_raw`] demands for as long as
    /// the row is in use.
    #[inline]
    pub unsafe fn row(self, pages: &[RowPage]) -> Result<UnsafeRowRef, RowError> {
        // SAFETY: the caller vouches for the pages.
        let (address, length) = unsafe { self.bytes(pages) }?;
        // SAFETY: the row lies behind its length, in a page, which the caller vouches for.
        Ok(unsafe { UnsafeRowRef::from_raw(address.wrapping_add(HEADER), length - HEADER) })
    }

    /// The address and the length of the row with its length in front.
    ///
    /// # Errors
    ///
    /// [`RowError::Page`] if it doesn't lie in one of `pages`.
    ///
    /// # Safety
    ///
    /// The pages must be readable.
    #[inline]
    pub(crate) unsafe fn bytes(self, pages: &[RowPage]) -> Result<(*const u8, usize), RowError> {
        let page = usize::try_from(self.0 >> PAGE_SHIFT & PAGE_MASK).unwrap_or(usize::MAX);
        let offset = usize::try_from(self.0 & OFFSET_MASK).unwrap_or(usize::MAX);
        let outside = |detail| RowError::Page { offset, detail };
        let Some((address, len)) = pages.get(page).copied() else {
            return Err(outside(format!("page {page} of {}", pages.len())));
        };
        let Some(left) = len.checked_sub(offset + HEADER) else {
            return Err(outside(format!("a row in a page of {len} bytes")));
        };
        let span = Span { address, len };
        // SAFETY: the page has HEADER bytes from `offset` on.
        let row = unsafe { span.read::<u32>(offset) } as usize;
        if row > left {
            return Err(outside(format!(
                "a row of {row} bytes, but {left} are left"
            )));
        }
        Ok((address.wrapping_add(offset), HEADER + row))
    }
}

/// Sorts `pointers` by partition; those of a partition keep their order. Each pass of the radix sort
/// takes up to 11 bits of the partition: one pass for 2,048 partitions, three for 16,777,216.
///
/// `scratch` is as long as `pointers`. Returns whether the sorted pointers are in it.
pub fn sort_pointers(
    pointers: &mut [RowPointer],
    scratch: &mut [RowPointer],
    partitions: u32,
) -> bool {
    let bits = u32::BITS - partitions.saturating_sub(1).leading_zeros();
    let passes = bits.div_ceil(MAX_DIGIT_BITS);
    let digit_bits = bits.div_ceil(passes.max(1));
    let (mut from, mut to) = (pointers, scratch);
    let mut in_scratch = false;
    for pass in 0..passes {
        if sort_pass(from, to, PARTITION_SHIFT + pass * digit_bits, digit_bits) {
            std::mem::swap(&mut from, &mut to);
            in_scratch = !in_scratch;
        }
    }
    in_scratch
}

/// Distributes pointers by one digit. Returns false, with nothing done, if all have the same.
fn sort_pass(from: &[RowPointer], to: &mut [RowPointer], shift: u32, bits: u32) -> bool {
    const BUCKETS: usize = 1 << MAX_DIGIT_BITS;
    let mask = (1_u64 << bits.min(MAX_DIGIT_BITS)) - 1;
    // The mask keeps digits below the number of buckets, so no check is left in the loops.
    let digit = |pointer: RowPointer| {
        usize::try_from(pointer.0 >> shift & mask).unwrap_or_default() % BUCKETS
    };
    let mut places = [0_usize; BUCKETS];
    for pointer in from {
        if let Some(count) = places.get_mut(digit(*pointer)) {
            *count += 1;
        }
    }
    if places.contains(&from.len()) {
        return false;
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    for pointer in from {
        if let Some(place) = places.get_mut(digit(*pointer)) {
            if let Some(slot) = to.get_mut(*place) {
                *slot = *pointer;
            }
            *place += 1;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pointer(partition: u32, page: usize, offset: usize) -> RowPointer {
        RowPointer::new(partition, page, offset).unwrap()
    }

    fn sorted(mut pointers: Vec<RowPointer>, partitions: u32) -> Vec<RowPointer> {
        let mut scratch = vec![RowPointer(0); pointers.len()];
        if sort_pointers(&mut pointers, &mut scratch, partitions) {
            scratch
        } else {
            pointers
        }
    }

    proptest! {
        #[test]
        fn sorts_by_partition_and_keeps_the_order(
            partitions in prop_oneof![1..3000_u32, Just(RowPointer::MAX_PARTITIONS)],
            seeds in prop::collection::vec(any::<u32>(), 0..5000),
        ) {
            let pointers: Vec<_> = seeds
                .iter()
                .zip(0..)
                .map(|(seed, index)| pointer(seed % partitions, index % 8192, index))
                .collect();
            let mut expected = pointers.clone();
            expected.sort_by_key(|pointer| pointer.partition());
            prop_assert_eq!(sorted(pointers, partitions), expected);
        }
    }

    #[test]
    fn every_part_has_its_bits() {
        let last = RowPointer::MAX_PARTITIONS - 1;
        let all = pointer(last, 8191, (1 << 27) - 1);
        assert_eq!(all.0, u64::MAX);
        assert_eq!(all.partition(), last);
        assert_eq!(pointer(5, 0, 0).0, 5 << 40);
        for (partition, page, offset) in [(last + 1, 0, 0), (0, 8192, 0), (0, 0, 1 << 27)] {
            assert_eq!(RowPointer::new(partition, page, offset), None);
        }
    }

    #[test]
    fn rows_are_found_in_their_pages_only() {
        let first = [1, 0, 0, 0, 7, 2, 0, 0, 0, 8, 9];
        let second = [0, 0, 0, 0];
        let pages = [
            (first.as_ptr(), first.len()),
            (second.as_ptr(), second.len()),
        ];
        let row = |page, offset| {
            // SAFETY: the pages outlive the rows.
            unsafe { pointer(3, page, offset).row(&pages) }.map(|row| {
                // SAFETY: the row lies in its page.
                unsafe { std::slice::from_raw_parts(row.address, row.len) }.to_vec()
            })
        };
        assert_eq!(row(0, 0).unwrap(), [7]);
        assert_eq!(row(0, 5).unwrap(), [8, 9]);
        assert!(row(1, 0).unwrap().is_empty());
        for (page, offset, message) in [
            (2, 0, "page 2 of 2"),
            (1, 1, "a row in a page of 4 bytes"),
            (0, 1, "but 6 are left"),
        ] {
            let error = row(page, offset).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
