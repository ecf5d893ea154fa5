//! Spilling some rows of many partitions: which ones go, and room for more where they were.
//!
//! Where a partition has few rows in memory its blocks are small. If only the fullest partitions are
//! spilled, the others get time to fill: as with replacement selection, runs become longer than what
//! fits in memory (Knuth, The Art of Computer Programming, volume 3, section 5.4.1).

use crate::error::RowError;
use crate::pointer::{RowPage, RowPointer};

/// Partitions of at least this many rows count as equally full. It bounds the counters.
const FULL: usize = 4096;

/// Copies `sorted` pointers to `ordered`, which has the same length: first those of the fullest
/// partitions, which have at least `wanted` rows together if there are as many, then the others, both
/// sorted as before. Returns how many come first.
pub fn fullest_first(sorted: &[RowPointer], ordered: &mut [RowPointer], wanted: usize) -> usize {
    let choice = Choice::new(sorted, wanted);
    let mut end = 0;
    for chosen in [true, false] {
        let mut choice = choice;
        let mut next = end;
        for run in runs(sorted).filter(|run| choice.takes(run.len()) == chosen) {
            if let Some(place) = ordered.get_mut(next..next + run.len()) {
                place.copy_from_slice(run);
            }
            next += run.len();
        }
        if chosen {
            end = next;
        }
    }
    end
}

/// The pointers of each partition.
fn runs(sorted: &[RowPointer]) -> impl Iterator<Item = &[RowPointer]> {
    sorted.chunk_by(|a, b| a.partition() == b.partition())
}

/// Which partitions are among the fullest.
#[derive(Clone, Copy)]
struct Choice {
    /// Fuller ones are.
    size: usize,
    /// How many rows of partitions of this size are wanted: the first of them are taken.
    ties: usize,
}

impl Choice {
    fn new(sorted: &[RowPointer], wanted: usize) -> Self {
        let mut rows = vec![0; FULL + 1];
        for run in runs(sorted) {
            if let Some(rows) = rows.get_mut(run.len().min(FULL)) {
                *rows += run.len();
            }
        }
        let mut ties = wanted;
        for (size, rows) in rows.into_iter().enumerate().rev() {
            if rows >= ties {
                return Self { size, ties };
            }
            ties -= rows;
        }
        Self { size: 0, ties: 0 }
    }

    fn takes(&mut self, rows: usize) -> bool {
        let size = rows.min(FULL);
        if size != self.size {
            return size > self.size;
        }
        let taken = self.ties > 0;
        self.ties = self.ties.saturating_sub(rows);
        taken
    }
}

/// Moves the rows of `pointers` to the front of `pages`, in the order in which they lie there, and
/// puts the pointers into that order. `sizes` are those of the pages, beyond the bytes with rows.
/// Returns how many bytes of each page are in use then; the pages behind are free.
///
/// # Errors
///
/// [`RowError::Page`] if a row doesn't lie in one of `pages`, or two lie in the same place.
///
/// # Safety
///
/// The pages must be writable up to their sizes, and in nobody else's use during the call.
pub unsafe fn compact_rows(
    pages: &[RowPage],
    sizes: &[usize],
    pointers: &mut [RowPointer],
) -> Result<Vec<usize>, RowError> {
    pointers.sort_unstable_by_key(|pointer| pointer.place());
    let mut used = Vec::new();
    let mut end = 0;
    for pointer in pointers {
        // SAFETY: the caller vouches for the pages.
        let (from, length) = unsafe { pointer.bytes(pages) }?;
        // No row goes beyond its own place, since all before it lay before it: what is not yet moved
        // is not overwritten, and there is a page. A page is full, too, where pointers do not reach.
        let (to, moved) = loop {
            let overlap = || RowError::Page {
                offset: end,
                detail: "rows that overlap".to_owned(),
            };
            let page = pages.get(used.len()).zip(sizes.get(used.len()));
            let ((address, _), size) = page.ok_or_else(overlap)?;
            let moved = RowPointer::new(pointer.partition(), used.len(), end);
            if let Some(moved) = moved.filter(|_| length <= size - end) {
                break (address.cast_mut().wrapping_add(end), moved);
            }
            used.push(std::mem::take(&mut end));
        };
        // SAFETY: both places lie within pages, which the caller vouches for; copy lets them overlap.
        unsafe { std::ptr::copy(from, to, length) };
        *pointer = moved;
        end += length;
    }
    if end > 0 {
        used.push(end);
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn pointer(partition: u32, page: usize, offset: usize) -> RowPointer {
        RowPointer::new(partition, page, offset).unwrap()
    }

    fn sizes(pointers: &[RowPointer]) -> BTreeMap<u32, usize> {
        let mut sizes = BTreeMap::new();
        for pointer in pointers {
            *sizes.entry(pointer.partition()).or_default() += 1;
        }
        sizes
    }

    fn sorted(rows: &BTreeMap<u32, usize>) -> Vec<RowPointer> {
        let rows = rows.iter();
        rows.flat_map(|(partition, rows)| (0..*rows).map(|row| (*partition, row)))
            .map(|(partition, row)| pointer(partition, 1, row))
            .collect()
    }

    proptest! {
        #[test]
        fn the_fullest_come_first(
            rows in prop::collection::btree_map(0..1000_u32, prop_oneof![1..9_usize, 4000..4200_usize], 1..40),
            share in 0.0..=1.0_f64,
        ) {
            let pointers = sorted(&rows);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let wanted = (pointers.len() as f64 * share) as usize;
            let mut ordered = vec![pointer(0, 0, 0); pointers.len()];
            let first = fullest_first(&pointers, &mut ordered, wanted);
            let (chosen, others) = ordered.split_at(first);
            prop_assert!(chosen.is_sorted_by_key(|pointer| pointer.partition()));
            prop_assert!(others.is_sorted_by_key(|pointer| pointer.partition()));
            // Whole partitions, each pointer once.
            let (chosen, others) = (sizes(chosen), sizes(others));
            prop_assert!(chosen.keys().all(|partition| !others.contains_key(partition)));
            ordered.sort_by_key(|pointer| (pointer.partition(), pointer.place()));
            prop_assert_eq!(ordered, pointers);
            // The fullest, as many as are needed.
            let smallest = chosen.values().copied().min().unwrap_or(FULL);
            let largest = others.values().copied().max().unwrap_or(0);
            prop_assert!(smallest.min(FULL) >= largest.min(FULL));
            prop_assert!(first >= wanted);
            let last = chosen.values().copied().filter(|rows| rows.min(&FULL) == &smallest.min(FULL));
            prop_assert!(wanted == 0 || first - last.max().unwrap_or(0) < wanted);
        }

        #[test]
        fn rows_are_moved_to_the_front(
            lengths in prop::collection::vec(0..60_usize, 0..80),
            keep in prop::collection::vec(any::<bool>(), 80),
            page_bytes in 64..200_usize,
        ) {
            // Rows of their number, packed into pages as a writer does.
            let mut pages: Vec<Vec<u8>> = Vec::new();
            let mut pointers = Vec::new();
            for (length, row) in lengths.iter().zip(0_u8..) {
                if pages.last().is_none_or(|page| page.len() + 4 + length > page_bytes) {
                    pages.push(Vec::with_capacity(page_bytes.max(4 + length)));
                }
                let index = pages.len() - 1;
                let page = pages.last_mut().unwrap();
                pointers.push((pointer(u32::from(row) * 7 % 5, index, page.len()), row));
                page.extend_from_slice(&u32::try_from(*length).unwrap().to_le_bytes());
                page.extend(std::iter::repeat_n(row, *length));
            }
            let mut kept: Vec<_> = pointers.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(p, _)| *p).collect();
            let rows = kept.clone();
            kept.sort_by_key(|(pointer, _)| pointer.partition());
            let mut kept: Vec<_> = kept.into_iter().map(|(pointer, _)| pointer).collect();
            let places: Vec<RowPage> = pages.iter_mut().map(|page| (page.as_mut_ptr().cast_const(), page.len())).collect();
            let sizes: Vec<_> = pages.iter().map(|page| page.capacity()).collect();
            // SAFETY: the pages are written to by nobody else.
            let used = unsafe { compact_rows(&places, &sizes, &mut kept) }.unwrap();
            let places: Vec<_> = places.iter().zip(&used).map(|((address, _), used)| (*address, *used)).collect();
            // In the order in which the rows came, with their partitions and bytes.
            prop_assert_eq!(kept.len(), rows.len());
            for (pointer, (before, row)) in kept.iter().zip(&rows) {
                prop_assert_eq!(pointer.partition(), before.partition());
                // SAFETY: the pages are written to by nobody.
                let (address, length) = unsafe { pointer.bytes(&places) }.unwrap();
                // SAFETY: the row lies there.
                let bytes = unsafe { std::slice::from_raw_parts(address, length) };
                prop_assert_eq!(&bytes[4..], vec![*row; lengths[usize::from(*row)]]);
            }
            // Without gaps, but for the ends of pages.
            let total: usize = rows.iter().map(|(_, row)| 4 + lengths[usize::from(*row)]).sum();
            prop_assert_eq!(used.iter().sum::<usize>(), total);
            prop_assert!(used.iter().zip(&sizes).all(|(used, size)| used <= size));
        }
    }

    #[test]
    fn no_row_is_moved_to_where_pointers_do_not_reach() {
        // A page of one large row that went, and pages of 50 MiB with a row each, which stay.
        const ROW: usize = 50 << 20;
        let mut first = vec![0_u8; 4 * ROW];
        let mut others: Vec<_> = (1..=4_u8)
            .map(|row| {
                let mut page = vec![row; ROW];
                let length = u32::try_from(ROW - 4).unwrap().to_le_bytes();
                page.get_mut(..4).unwrap().copy_from_slice(&length);
                page
            })
            .collect();
        let mut pages: Vec<RowPage> = vec![(first.as_mut_ptr().cast_const(), first.len())];
        pages.extend(
            others
                .iter_mut()
                .map(|page| (page.as_mut_ptr().cast_const(), ROW)),
        );
        let sizes: Vec<_> = pages.iter().map(|(_, size)| *size).collect();
        let mut pointers: Vec<_> = (1..=4).map(|page| pointer(7, page, 0)).collect();
        // SAFETY: the pages are written to by nobody else.
        let used = unsafe { compact_rows(&pages, &sizes, &mut pointers) }.unwrap();
        // The fourth would start behind 2^27 bytes.
        assert_eq!(used, [3 * ROW, ROW]);
        for (moved, row) in pointers.iter().zip(1..=4_u8) {
            // SAFETY: the pages are written to by nobody, and outlive the row.
            let found = unsafe { moved.row(&pages) }.unwrap();
            // SAFETY: the row lies there.
            let bytes = unsafe { std::slice::from_raw_parts(found.address, found.len) };
            assert_eq!((moved.partition(), bytes.len()), (7, ROW - 4));
            assert!(bytes == vec![row; ROW - 4]);
        }
    }

    #[test]
    fn rows_that_overlap_or_lie_outside_are_errors() {
        let mut page = [4_u8, 0, 0, 0, 1, 2, 3, 4];
        let pages = [(page.as_mut_ptr().cast_const(), page.len())];
        for (wrong, message) in [
            (pointer(0, 0, 0), "rows that overlap"),
            (pointer(0, 1, 0), "page 1 of 1"),
            (pointer(0, 0, 5), "a row in a page of 8 bytes"),
        ] {
            let mut pointers = [pointer(0, 0, 0), wrong];
            // SAFETY: the page is written to by nobody else.
            let error = unsafe { compact_rows(&pages, &[8], &mut pointers) }.unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
