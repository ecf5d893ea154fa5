//! Rows in the order of their partitions.

use arrow_array::RecordBatch;

use crate::{Result, ShuffleError};

/// Where a staged row is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowRef {
    pub(crate) batch: u32,
    pub(crate) row: u32,
}

/// The bytes that a staged row costs beside its values: its partition and its place in the order.
pub(crate) const ROW_BYTES: usize = size_of::<u32>() + size_of::<RowRef>();

/// A counting sort whose memory is kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct RowOrder {
    /// Where each partition's rows start, and where the last one's end.
    starts: Vec<usize>,
    rows: Vec<RowRef>,
}

impl RowOrder {
    /// Sorts the rows of `batches`, whose partitions are `ids`. Rows of a partition stay in the
    /// order in which they came.
    pub(crate) fn sort(
        &mut self,
        batches: &[RecordBatch],
        ids: &[u32],
        partitions: usize,
    ) -> Result<()> {
        const BAD_ID: ShuffleError = ShuffleError::Internal("partition id out of range");
        self.starts.clear();
        // One more than there are partitions, so that placing a row moves the start of its
        // partition to what is the start of the next one, from where it is shifted back.
        self.starts.resize(partitions + 2, 0);
        for id in ids {
            let count = usize::try_from(*id).ok().map(|id| id + 2);
            *count.and_then(|at| self.starts.get_mut(at)).ok_or(BAD_ID)? += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.rows.clear();
        self.rows.resize(ids.len(), RowRef::default());
        let mut ids = ids.iter();
        for (batch, index) in batches.iter().zip(0_u32..) {
            for (row, id) in (0..batch.num_rows()).zip(ids.by_ref()) {
                let at = usize::try_from(*id).ok().map(|id| id + 1);
                let next = at.and_then(|at| self.starts.get_mut(at)).ok_or(BAD_ID)?;
                *self.rows.get_mut(*next).ok_or(BAD_ID)? = RowRef {
                    batch: index,
                    row: u32::try_from(row).map_err(|_| BAD_ID)?,
                };
                *next += 1;
            }
        }
        self.starts.truncate(partitions + 1);
        Ok(())
    }

    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub(crate) fn rows(&self) -> &[RowRef] {
        &self.rows
    }

    /// The bytes that depend on the number of partitions.
    pub(crate) fn fixed_bytes(partitions: usize) -> usize {
        (partitions + 2) * size_of::<usize>()
    }

    /// Gives the memory for rows back.
    pub(crate) fn reset(&mut self) {
        self.rows = Vec::new();
    }
}
