//! Staged batches, and how they become blocks.

use std::ops::Range;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::gather::Gather;
use crate::metrics::{nanos_since, wide};
use crate::order::{ROW_BYTES, RowOrder};
use crate::pinned::Pinned;
use crate::spill::SpillWriter;
use crate::{
    BlockSink, BufBatchWriter, LocalPartitionWriter, PartitionOutput, Result, ShuffleError,
    ShuffleScratch, ShuffleWriterOptions,
};

/// About how large a block may get before compression, however wide its rows are.
const MAX_BLOCK_BYTES: usize = 32 << 20;

/// What is staged, what was spilled, and the scratch for both.
#[derive(Debug)]
pub(crate) struct Staging {
    schema: SchemaRef,
    options: ShuffleWriterOptions,
    partitions: usize,
    batches: Vec<RecordBatch>,
    /// The partition of each staged row.
    ids: Vec<u32>,
    /// What the staged batches were charged with.
    bytes: usize,
    pinned: Pinned,
    order: RowOrder,
    spills: SpillWriter,
    pub(crate) scratch: ShuffleScratch,
    /// Changes whenever the staged batches go.
    pub(crate) generation: u64,
    /// What everything but staged batches was charged with.
    pub(crate) overhead: usize,
    /// Why nothing more can be written.
    failure: Option<String>,
}

impl std::fmt::Debug for ShuffleScratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShuffleScratch({} bytes)", self.memory_size())
    }
}

impl Staging {
    pub(crate) fn new(
        schema: SchemaRef,
        partitions: usize,
        options: ShuffleWriterOptions,
    ) -> Result<Self> {
        let scratch = ShuffleScratch::new(SchemaRef::clone(&schema), options.codec)?;
        let spill_path = options.spill_path.clone();
        Ok(Self {
            spills: SpillWriter::new(spill_path, options.write_buffer_size),
            schema,
            options,
            partitions,
            batches: Vec::new(),
            ids: Vec::new(),
            bytes: 0,
            pinned: Pinned::default(),
            order: RowOrder::default(),
            scratch,
            generation: 0,
            overhead: 0,
            failure: None,
        })
    }

    pub(crate) fn check(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(ShuffleError::Failed(failure.clone())),
            None => Ok(()),
        }
    }

    pub(crate) fn buffered_bytes(&self) -> usize {
        self.bytes
    }

    /// What staging `batch` has to be charged with.
    pub(crate) fn price(&self, batch: &RecordBatch) -> usize {
        let rows = batch.num_rows();
        let rows = rows.saturating_mul(ROW_BYTES);
        rows.saturating_add(self.pinned.added_bytes(batch))
    }

    /// What there is beside staged batches.
    pub(crate) fn overhead_now(&self) -> usize {
        self.scratch.memory_size()
            + self.spills.memory_size()
            + RowOrder::fixed_bytes(self.partitions)
    }

    /// Takes a batch that was charged with `price`.
    pub(crate) fn stage(&mut self, batch: &RecordBatch, ids: &[u32], price: usize) {
        self.pinned.add(batch);
        self.batches.push(batch.clone());
        self.ids.extend_from_slice(ids);
        self.bytes += price;
        let metrics = &mut self.scratch.metrics;
        metrics.peak_buffered_bytes = metrics.peak_buffered_bytes.max(wide(self.bytes));
    }

    /// Writes everything that is staged to the spill file. The batches are handed out to be
    /// dropped when no lock is held, with the bytes that they were charged with.
    pub(crate) fn spill(&mut self) -> Result<(Vec<RecordBatch>, usize)> {
        // Also when it was finished while the caller waited for the lock.
        if self.batches.is_empty() {
            return Ok((Vec::new(), 0));
        }
        self.check()?;
        if let Err(error) = self.write_spill() {
            self.failure = Some(error.to_string());
            return Err(error);
        }
        let metrics = &mut self.scratch.metrics;
        metrics.spills += 1;
        metrics.memory_bytes_spilled += wide(self.bytes);
        metrics.disk_bytes_spilled = self.spills.total();
        Ok(self.let_go())
    }

    fn let_go(&mut self) -> (Vec<RecordBatch>, usize) {
        self.generation += 1;
        self.pinned.clear();
        self.ids = Vec::new();
        self.order.reset();
        (
            std::mem::take(&mut self.batches),
            std::mem::take(&mut self.bytes),
        )
    }

    fn sort(&mut self) -> Result<()> {
        let started = Instant::now();
        let sorted = self.order.sort(&self.batches, &self.ids, self.partitions);
        self.scratch.metrics.partition_nanos += nanos_since(started);
        sorted
    }

    fn block_rows(&self) -> usize {
        let rows = self.ids.len().max(1);
        let row_bytes = (self.bytes / rows).max(1);
        let most = (MAX_BLOCK_BYTES / row_bytes).max(1);
        self.options.block_rows.clamp(1, most)
    }

    fn write_spill(&mut self) -> Result<()> {
        self.sort()?;
        let block_rows = self.block_rows();
        let schema = SchemaRef::clone(&self.schema);
        let mut gather = Gather::new(schema, &self.batches, &self.order, block_rows);
        let mut writer =
            BufBatchWriter::new_passthrough(&mut self.spills, self.options.write_buffer_size);
        let started = Instant::now();
        let before = time_in_blocks(&self.scratch);
        for partition in 0..self.partitions {
            let rows = gather.partition(partition);
            if !rows.is_empty() {
                let blocks = Blocks { rows, end: false };
                blocks.write(&mut gather, &mut writer, &mut self.scratch, &self.options)?;
                writer.drain(&mut self.scratch)?;
                writer.sink_mut().end_partition(partition);
            }
        }
        self.spills.end_spill()?;
        let elsewhere = time_in_blocks(&self.scratch) - before + gather.nanos;
        let metrics = &mut self.scratch.metrics;
        metrics.gather_nanos += gather.nanos;
        metrics.write_nanos += nanos_since(started).saturating_sub(elsewhere);
        Ok(())
    }

    /// Writes the final file from what was spilled and what is still staged.
    pub(crate) fn finish(&mut self) -> Result<PartitionOutput> {
        self.check()?;
        let output = self.write_final();
        self.failure = Some(match &output {
            Ok(_) => "it was finished".to_owned(),
            Err(error) => error.to_string(),
        });
        output
    }

    fn write_final(&mut self) -> Result<PartitionOutput> {
        let options = &self.options;
        let mut output = LocalPartitionWriter::create(
            options.data_path.clone(),
            self.partitions,
            options.write_buffer_size,
            options.checksum,
        )?;
        self.sort()?;
        let block_rows = self.block_rows();
        let schema = SchemaRef::clone(&self.schema);
        let mut gather = Gather::new(schema, &self.batches, &self.order, block_rows);
        let mut extents = self.spills.merged();
        let mut read_buffer = Vec::new();
        let write_size = self.options.write_buffer_size;
        let mut writer = BufBatchWriter::new_passthrough(&mut output, write_size);
        for partition in 0..self.partitions {
            let spilled = !self.spills.is_empty()
                && extents.take(partition, |extent| {
                    self.options.check_cancelled()?;
                    let output = writer.sink_mut();
                    output.copy_extent(&self.spills, extent, &mut read_buffer)
                })?;
            let rows = gather.partition(partition);
            if rows.is_empty() && !spilled {
                continue;
            }
            let blocks = Blocks { rows, end: true };
            blocks.write(&mut gather, &mut writer, &mut self.scratch, &self.options)?;
            writer.drain(&mut self.scratch)?;
            writer.sink_mut().end_partition(partition)?;
        }
        self.scratch.metrics.gather_nanos += gather.nanos;
        self.scratch.metrics.write_nanos += output.write_nanos();
        output.finish_all()
    }

    /// Lets everything go, at the end.
    pub(crate) fn clear(&mut self) -> Vec<RecordBatch> {
        self.let_go().0
    }
}

fn time_in_blocks(scratch: &ShuffleScratch) -> u64 {
    scratch.metrics.encode_nanos + scratch.metrics.compress_nanos
}

/// The blocks of a partition.
struct Blocks {
    rows: Range<usize>,
    /// Whether the last of them ends the partition.
    end: bool,
}

impl Blocks {
    fn write<S: BlockSink>(
        self,
        gather: &mut Gather<'_>,
        writer: &mut BufBatchWriter<S>,
        scratch: &mut ShuffleScratch,
        options: &ShuffleWriterOptions,
    ) -> Result<()> {
        let mut rows = self.rows;
        if rows.is_empty() && self.end {
            return writer.end(scratch);
        }
        while !rows.is_empty() {
            options.check_cancelled()?;
            let block = gather.block(rows.clone())?;
            rows.start += block.num_rows();
            writer.write(&block, self.end && rows.is_empty(), scratch)?;
        }
        Ok(())
    }
}
