use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use arrow_array::RecordBatch;

use super::{Partitioner, identity, partition_count};
use crate::Result;

/// Places a row by a hash over all its columns, and equal rows one after another from there.
///
/// The k-th row with the hash h goes to partition (h + k) mod n. So the same rows are placed the
/// same way whatever their order and batches: a task that is run again after its input came in
/// another order writes the same partitions, without the sort that Spark needs for that. Rows that
/// are all different spread as well as their hashes do, equal ones to within one row.
///
/// The price is a count for every different row, about 20 to 40 bytes, which `memory_size` reports
/// so that it can be charged. Two different rows share a count if 64 bits of hash are equal.
#[derive(Debug)]
pub struct RoundRobinPartitioner {
    partitions: u32,
    hashes: Vec<u64>,
    counts: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
}

impl RoundRobinPartitioner {
    /// A partitioner of any batches.
    ///
    /// # Errors
    ///
    /// [`crate::ShuffleError::Unsupported`] if there is no such number of partitions.
    pub fn new(partitions: usize) -> Result<Self> {
        Ok(Self {
            partitions: partition_count(partitions)?,
            hashes: Vec::new(),
            counts: HashMap::default(),
        })
    }
}

impl Partitioner for RoundRobinPartitioner {
    fn partitions(&self) -> usize {
        usize::try_from(self.partitions).unwrap_or(1)
    }

    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        identity::hash_rows(batch, &mut self.hashes)?;
        ids.clear();
        ids.reserve(batch.num_rows());
        let partitions = u64::from(self.partitions);
        for hash in &self.hashes {
            let count = self.counts.entry(*hash).or_default();
            // The upper half chooses the partition, so that the table's low bits don't matter.
            let place = ((hash >> 32) + u64::from(*count)) % partitions;
            // Counting modulo n keeps the count small.
            *count = if *count + 1 == self.partitions {
                0
            } else {
                *count + 1
            };
            ids.push(u32::try_from(place).unwrap_or(0));
        }
        Ok(())
    }

    fn memory_size(&self) -> usize {
        // A slot and its control byte; seven eighths of the slots are capacity.
        let slots = self.counts.capacity() / 7 * 8;
        slots * (size_of::<(u64, u32)>() + 1) + self.hashes.capacity() * size_of::<u64>()
    }
}

/// The keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
