use arrow_array::RecordBatch;

use super::{Partitioner, partition_count};
use crate::Result;

/// The most rows that a partition gets in a row.
const MAX_RUN: u32 = 16;
/// The rounds over all partitions before the runs double.
const ROUNDS: u32 = 64;

/// Deals the rows of a task to the partitions in turn, whatever their batches.
///
/// First a partition gets one row at a time. After 64 rounds it gets two, and so on up to 16:
/// neighbours compress better together and are copied faster. A partition never has more than one
/// run of rows more than another: one row, or later at most a 64th of what each has.
///
/// A task that runs again must get its rows in the same order, else its rows are placed anew and
/// what was already read of them no longer fits. Where the order isn't fixed the caller has to sort
/// the rows first, or to declare its output indeterminate.
#[derive(Debug)]
pub struct RoundRobinPartitioner {
    partitions: u32,
    current: u32,
    /// The rows that the current partition still gets, of a run of so many.
    left: u32,
    run: u32,
    /// The runs that are left before they double.
    runs: u64,
}

impl RoundRobinPartitioner {
    /// A partitioner of any batches; the first row goes to the partition behind `start`.
    ///
    /// # Errors
    ///
    /// [`crate::ShuffleError::Unsupported`] if there is no such number of partitions.
    pub fn new(partitions: usize, start: usize) -> Result<Self> {
        let count = partition_count(partitions)?;
        Ok(Self {
            partitions: count,
            current: u32::try_from(start % partitions).unwrap_or(0),
            left: 0,
            run: 1,
            runs: Self::runs_before_doubling(count),
        })
    }

    fn runs_before_doubling(partitions: u32) -> u64 {
        u64::from(partitions) * u64::from(ROUNDS)
    }

    fn next_run(&mut self) {
        if self.runs == 0 && self.run < MAX_RUN {
            self.run *= 2;
            self.runs = Self::runs_before_doubling(self.partitions);
        }
        self.runs = self.runs.saturating_sub(1);
        self.left = self.run;
        self.current += 1;
        if self.current == self.partitions {
            self.current = 0;
        }
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
            if self.left == 0 {
                self.next_run();
            }
            self.left -= 1;
            ids.push(self.current);
        }
        Ok(())
    }
}
