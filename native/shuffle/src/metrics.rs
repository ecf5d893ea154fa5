use std::time::{Duration, Instant};

use comet_block::BlockStats;

/// What a shuffle write did and where its time went. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShuffleMetrics {
    /// Batches that came in.
    pub input_batches: u64,
    /// Rows that came in.
    pub rows: u64,
    /// Blocks written, those in spills included.
    pub blocks: u64,
    /// Spills.
    pub spills: u64,
    /// Bytes of memory that spills freed.
    pub memory_bytes_spilled: u64,
    /// Bytes that spills wrote.
    pub disk_bytes_spilled: u64,
    /// The most bytes that were staged at once.
    pub peak_buffered_bytes: u64,
    /// Bytes of blocks before compression.
    pub raw_bytes: u64,
    /// Time for partition ids and sorting row references by them.
    pub partition_nanos: u64,
    /// Time for gathering rows.
    pub gather_nanos: u64,
    /// Time for encoding blocks.
    pub encode_nanos: u64,
    /// Time for compressing them.
    pub compress_nanos: u64,
    /// Time for writing files, and reading spills back.
    pub write_nanos: u64,
}

impl ShuffleMetrics {
    pub(crate) fn add_block(&mut self, stats: &BlockStats) {
        self.blocks += 1;
        self.raw_bytes += stats.raw_length;
        self.encode_nanos += stats.encode_nanos;
        self.compress_nanos += stats.compress_nanos;
    }
}

pub(crate) fn nanos_since(start: Instant) -> u64 {
    nanos(start.elapsed())
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
