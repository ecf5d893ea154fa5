//! Growing 32-bit offsets.

use arrow_buffer::OffsetBuffer;

use super::Shared;
use crate::error::RowError;

/// The offsets of a variable-length column, and how large its values tend to be.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    offsets: Vec<i32>,
    /// Rows and total length of the batch before, from which the room for the next is guessed.
    last: (usize, usize),
}

impl Offsets {
    /// Starts at zero with room for `rows` more. Returns the room that their values will likely
    /// need, at most what the batch before had.
    pub(super) fn begin(&mut self, rows: usize) -> usize {
        self.offsets.clear();
        self.offsets.reserve_exact(rows + 1);
        self.offsets.push(0);
        let (last_rows, last_len) = self.last;
        if rows >= last_rows {
            return last_len;
        }
        last_len / last_rows.max(1) * rows
    }

    /// Appends the ends of values with these lengths.
    ///
    /// # Errors
    ///
    /// [`RowError::Malformed`] if all values together are larger than the batch.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        lengths: impl ExactSizeIterator<Item = usize>,
        shared: &Shared,
    ) -> Result<(), RowError> {
        let mut end = self.end();
        self.offsets.extend(lengths.map(|len| {
            end = end.saturating_add(len);
            // What is cut off here is refused below: the budget is below `i32::MAX`.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            let offset = end as i32;
            offset
        }));
        check_budget(end, shared)
    }

    /// The end of the last value.
    pub(super) fn end(&self) -> usize {
        let last = self.offsets.last().copied().unwrap_or(0);
        usize::try_from(last).unwrap_or(0)
    }

    /// Hands the offsets over, leaving none.
    pub(super) fn finish(&mut self) -> OffsetBuffer<i32> {
        self.last = (self.offsets.len().saturating_sub(1), self.end());
        let offsets = std::mem::take(&mut self.offsets);
        // SAFETY: they begin with 0 and grow: `push` refuses sums above the budget, and the batch
        // isn't finished after that.
        unsafe { OffsetBuffer::new_unchecked(offsets.into()) }
    }
}

/// Refuses values that are together larger than the rows they are in.
#[inline(always)]
pub(super) fn check_budget(total: usize, shared: &Shared) -> Result<(), RowError> {
    if total <= shared.budget {
        return Ok(());
    }
    Err(RowError::malformed(format!(
        "values of {total} bytes overlap in rows of {} bytes",
        shared.budget
    )))
}
