use arrow_array::RecordBatch;

use super::{Partitioner, partition_count};
use crate::Result;

/// Places the rows of a task one after another, whatever their batches.
///
/// A task that runs again must get its rows in the same order, else its rows are placed anew and
/// what was already read of them no longer fits. Where the order isn't fixed the caller has to sort
/// the rows first, or to declare its output indeterminate.
#[derive(Debug)]
pub struct RoundRobinPartitioner {
    partitions: u32,
    last: u32,
}

impl RoundRobinPartitioner {
    /// A partitioner of any batches; the first row goes to the partition behind `start`.
    ///
    /// # Errors
    ///
    /// [`crate::ShuffleError::Unsupported`] if there is no such number of partitions.
    pub fn new(partitions: usize, start: usize) -> Result<Self> {
        Ok(Self {
            partitions: partition_count(partitions)?,
            last: u32::try_from(start % partitions).unwrap_or(0),
        })
    }
}

impl Partitioner for RoundRobinPartitioner {
    fn partitions(&self) -> usize {
        usize::try_from(self.partitions).unwrap_or(1)
    }

    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        ids.reserve(batch.num_rows());
        for _ in 0..batch.num_rows() {
            self.last += 1;
            if self.last == self.partitions {
                self.last = 0;
            }
            ids.push(self.last);
        }
        Ok(())
    }
}
