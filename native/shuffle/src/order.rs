//! Rows in the order of their partitions.

use arrow_array::RecordBatch;

use crate::{Result, ShuffleError};

/// Where a staged row is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowRef {
    pub(crate) batch: u32,
    pub(crate) row: u32,
}

/// The sorted rows of one partition: from where the run before ends up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) partition: u32,
    pub(crate) end: u32,
}

/// The bytes that a staged row costs beside its values: its partition and its place in the order.
pub(crate) const ROW_BYTES: usize = size_of::<u32>() + size_of::<RowRef>();

/// Up to this many partitions, or twice the rows, the rows of each partition are counted.
const MAX_COUNTED_PARTITIONS: usize = 1 << 12;

const TOO_MANY_ROWS: ShuffleError = ShuffleError::Internal("more than 2^32 rows are staged");
const BAD_ID: ShuffleError = ShuffleError::Internal("partition id out of range");

/// A sort by partition whose memory is kept for the next one. What it takes follows the rows, not
/// the partitions.
#[derive(Debug, Default)]
pub(crate) struct RowOrder {
    rows: Vec<RowRef>,
    runs: Vec<Run>,
    counts: Vec<u32>,
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
        self.rows.clear();
        self.runs.clear();
        u32::try_from(ids.len()).map_err(|_| TOO_MANY_ROWS)?;
        if partitions <= MAX_COUNTED_PARTITIONS.max(2 * ids.len()) {
            self.sort_by_count(batches, ids, partitions)
        } else {
            self.sort_by_comparison(batches, ids)
        }
    }

    fn sort_by_count(
        &mut self,
        batches: &[RecordBatch],
        ids: &[u32],
        partitions: usize,
    ) -> Result<()> {
        let counts = &mut self.counts;
        counts.clear();
        counts.resize(partitions, 0);
        for id in ids {
            let Some(count) = usize::try_from(*id).ok().and_then(|id| counts.get_mut(id)) else {
                return Err(BAD_ID);
            };
            *count += 1;
        }
        // From here on each count is where the next row of the partition goes.
        let mut end = 0;
        for (count, partition) in counts.iter_mut().zip(0..) {
            let start = end;
            end += *count;
            if *count > 0 {
                self.runs.push(Run { partition, end });
            }
            *count = start;
        }
        self.rows.resize(ids.len(), RowRef::default());
        let mut ids = ids.iter();
        for (batch, rows) in batches.iter().zip(0..) {
            for ((_, row), id) in (0..batch.num_rows()).zip(0..).zip(ids.by_ref()) {
                let next = usize::try_from(*id).ok().and_then(|id| counts.get_mut(id));
                let Some(next) = next else {
                    return Err(BAD_ID);
                };
                let place = usize::try_from(*next).ok();
                let Some(place) = place.and_then(|at| self.rows.get_mut(at)) else {
                    return Err(BAD_ID);
                };
                *place = RowRef { batch: rows, row };
                *next += 1;
            }
        }
        Ok(())
    }

    fn sort_by_comparison(&mut self, batches: &[RecordBatch], ids: &[u32]) -> Result<()> {
        let mut keyed: Vec<(u32, u32)> = ids.iter().copied().zip(0..).collect();
        keyed.sort_unstable();
        let unsorted: Vec<_> = staged_rows(batches).collect();
        for ((partition, row), end) in keyed.into_iter().zip(1..) {
            let row = usize::try_from(row).ok().and_then(|row| unsorted.get(row));
            self.rows.push(*row.ok_or(BAD_ID)?);
            match self.runs.last_mut() {
                Some(run) if run.partition == partition => run.end = end,
                _ => self.runs.push(Run { partition, end }),
            }
        }
        Ok(())
    }

    /// The rows of all partitions, one after the other.
    pub(crate) fn rows(&self) -> &[RowRef] {
        &self.rows
    }

    /// The partitions that have rows, ascending.
    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The bytes that are kept for the next sort and that rows are not charged for.
    pub(crate) fn memory_size(&self) -> usize {
        self.counts.capacity() * size_of::<u32>() + self.runs.capacity() * size_of::<Run>()
    }

    /// Forgets the order and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.runs.clear();
    }

    /// Gives the memory for rows back.
    pub(crate) fn reset(&mut self) {
        self.rows = Vec::new();
        self.runs = Vec::new();
    }
}

/// The rows of batches as they were staged.
fn staged_rows(batches: &[RecordBatch]) -> impl Iterator<Item = RowRef> {
    let batches = batches.iter().zip(0_u32..);
    batches.flat_map(|(rows, batch)| {
        (0..rows.num_rows())
            .zip(0_u32..)
            .map(move |(_, row)| RowRef { batch, row })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;

    use super::*;

    #[test]
    #[allow(clippy::unwrap_used)]
    fn both_sorts_give_the_same_order() {
        let batch = |rows: i32| {
            let values = Int32Array::from_iter_values(0..rows);
            RecordBatch::try_from_iter([("v", Arc::new(values) as _)]).unwrap()
        };
        let batches = [batch(5), batch(0), batch(7)];
        let ids = [9, 2, 9, 0, 2, 2, 9, 9, 1, 0, 2, 9];
        let (mut counted, mut compared) = (RowOrder::default(), RowOrder::default());
        counted.sort(&batches, &ids, 10).unwrap();
        compared.sort(&batches, &ids, 1 << 24).unwrap();
        assert_eq!(counted.rows(), compared.rows());
        assert_eq!(counted.runs(), compared.runs());
        let ends: Vec<_> = counted
            .runs()
            .iter()
            .map(|run| (run.partition, run.end))
            .collect();
        assert_eq!(ends, [(0, 2), (1, 3), (2, 7), (9, 12)]);
        assert!(counted.sort(&batches, &ids, 9).is_err());
    }
}
