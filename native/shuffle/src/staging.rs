//! Staged batches, and how they become blocks.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::gather::{Gather, INDEX_BYTES, SortedGroup};
use crate::metrics::{nanos_since, wide};
use crate::order::{ROW_BYTES, RowOrder, Run};
use crate::pinned::Pinned;
use crate::sizes::Sizes;
use crate::spill::{MergedExtents, SpillWriter};
use crate::{
    BufBatchWriter, LocalPartitionWriter, PartitionOutput, Result, ShuffleError, ShuffleScratch,
    ShuffleWriterOptions,
};

/// Batches that are staged are a group when they have this many bytes or rows: a column of them fits
/// the cache of a core, and a partition has a run of rows worth copying in one go.
const FULL_GROUP_BYTES: usize = 8 << 20;
const FULL_GROUP_ROWS: usize = 1 << 16;
/// A group that is larger may have a column that 32-bit offsets cannot address.
pub(crate) const MAX_GROUP_BYTES: usize = (1 << 31) - 1;

/// What holds the staged rows.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    _groups: Vec<SortedGroup>,
    _batches: Vec<RecordBatch>,
}

/// What is staged, what was spilled, and the scratch for both.
#[derive(Debug)]
pub(crate) struct Staging {
    schema: SchemaRef,
    options: ShuffleWriterOptions,
    partitions: usize,
    groups: Vec<SortedGroup>,
    /// Batches that are in no group yet.
    batches: Vec<RecordBatch>,
    /// The partitions of their rows.
    ids: Vec<u32>,
    /// What they were charged with.
    group_bytes: usize,
    /// How many bytes make them a group.
    full_group_bytes: usize,
    /// What all that is staged was charged with.
    bytes: usize,
    pinned: Pinned,
    order: RowOrder,
    spills: SpillWriter,
    pub(crate) scratch: ShuffleScratch,
    /// What the scratch takes before anything is written.
    fixed_scratch: usize,
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
            spills: SpillWriter::new(spill_path),
            schema,
            options,
            partitions,
            groups: Vec::new(),
            batches: Vec::new(),
            ids: Vec::new(),
            group_bytes: 0,
            full_group_bytes: FULL_GROUP_BYTES,
            bytes: 0,
            pinned: Pinned::default(),
            order: RowOrder::default(),
            fixed_scratch: scratch.memory_size(),
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

    /// What there is beside staged batches, once these are charged with `price` more, and what
    /// writing them will take: writing must not need memory, since it is how memory is freed.
    pub(crate) fn overhead_with(&self, price: usize) -> usize {
        let bytes = self.bytes.saturating_add(price);
        let sizes = Sizes::new(&self.options, bytes);
        let scratch = self.fixed_scratch + sizes.scratch();
        let gathered = self.options.block_rows.min(bytes / ROW_BYTES) * INDEX_BYTES + sizes.block;
        self.scratch.memory_size().max(scratch)
            + gathered
            + self.spills.memory_size()
            + self.order.memory_size()
    }

    /// Takes a batch that was charged with `price`.
    pub(crate) fn stage(&mut self, batch: &RecordBatch, ids: &[u32], price: usize) {
        self.pinned.add(batch);
        self.batches.push(batch.clone());
        self.ids.extend_from_slice(ids);
        self.bytes += price;
        self.group_bytes += price;
        let metrics = &mut self.scratch.metrics;
        metrics.peak_buffered_bytes = metrics.peak_buffered_bytes.max(wide(self.bytes));
    }

    /// Writes everything that is staged to the spill file. The batches are handed out to be
    /// dropped when no lock is held, with the bytes that they were charged with.
    pub(crate) fn spill(&mut self) -> Result<(Staged, usize)> {
        // Also when it was finished while the caller waited for the lock.
        if self.batches.is_empty() && self.groups.is_empty() {
            return Ok((Staged::default(), 0));
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

    fn let_go(&mut self) -> (Staged, usize) {
        self.generation += 1;
        self.pinned.clear();
        self.ids = Vec::new();
        self.order.reset();
        self.group_bytes = 0;
        self.full_group_bytes = FULL_GROUP_BYTES;
        let staged = Staged {
            _groups: std::mem::take(&mut self.groups),
            _batches: std::mem::take(&mut self.batches),
        };
        (staged, std::mem::take(&mut self.bytes))
    }

    fn sort(&mut self) -> Result<()> {
        let started = Instant::now();
        let sorted = self.order.sort(&self.batches, &self.ids, self.partitions);
        self.scratch.metrics.partition_nanos += nanos_since(started);
        sorted
    }

    /// Whether the batches that are in no group are worth one.
    pub(crate) fn is_group_full(&self) -> bool {
        self.group_bytes >= self.full_group_bytes || self.ids.len() >= FULL_GROUP_ROWS
    }

    /// About what [`Staging::seal`] needs: the values of the batches, and some for each array.
    pub(crate) fn seal_bytes(&self) -> Result<usize> {
        const ARRAY_BYTES: usize = 512;
        let mut bytes = self.ids.len().min(self.partitions) * size_of::<Run>();
        bytes += self.ids.len() * INDEX_BYTES;
        bytes += ARRAY_BYTES * self.schema.fields().len();
        for column in self.batches.iter().flat_map(RecordBatch::columns) {
            bytes += column.to_data().get_slice_memory_size()?;
        }
        Ok(bytes)
    }

    /// There can be no group now: the next try is when there is twice as much to gain.
    pub(crate) fn postpone_seal(&mut self) {
        self.full_group_bytes = 2 * self.group_bytes.max(FULL_GROUP_BYTES);
    }

    /// Makes the batches that are in no group one, in the order of their partitions. `charged` is what
    /// was reserved for that. The batches are handed out to be dropped when no lock is held, with how
    /// much less is in use then.
    pub(crate) fn seal(&mut self, charged: usize) -> Result<(Vec<RecordBatch>, usize)> {
        self.check()?;
        self.sort()?;
        let started = Instant::now();
        let group = SortedGroup::new(&self.schema, &self.batches, &self.order)?;
        self.scratch.metrics.gather_nanos += nanos_since(started);
        let held = std::mem::take(&mut self.group_bytes) + charged;
        let bytes = group.memory_size().min(held);
        self.groups.push(group);
        self.bytes = self.bytes + charged - (held - bytes);
        self.full_group_bytes = FULL_GROUP_BYTES;
        self.pinned.clear();
        self.ids.clear();
        self.order.clear();
        Ok((std::mem::take(&mut self.batches), held - bytes))
    }

    fn write_spill(&mut self) -> Result<()> {
        self.sort()?;
        let sizes = Sizes::new(&self.options, self.bytes);
        self.scratch.reserve(sizes.buffer);
        let mut gather = Gather::new(
            &self.schema,
            &self.groups,
            &self.batches,
            &self.order,
            (self.options.block_rows, sizes.block),
        )?;
        let mut writer = BufBatchWriter::new_passthrough(&mut self.spills, sizes.buffer);
        let started = Instant::now();
        let before = time_in_blocks(&self.scratch);
        while let Some(block) = gather.next()? {
            self.options.check_cancelled()?;
            writer.write_rows(block.rows, block.ranges, false, &mut self.scratch)?;
            if block.last {
                writer.end_partition(block.partition, &self.scratch)?;
            }
        }
        writer.drain(&mut self.scratch)?;
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
        self.sort()?;
        let sizes = Sizes::new(&self.options, self.bytes);
        self.scratch.reserve(sizes.buffer);
        let mut output = LocalPartitionWriter::create(
            self.options.data_path.clone(),
            self.partitions,
            self.options.checksum,
        )?;
        let mut gather = Gather::new(
            &self.schema,
            &self.groups,
            &self.batches,
            &self.order,
            (self.options.block_rows, sizes.block),
        )?;
        let mut spilled = SpilledRows {
            spills: &self.spills,
            extents: self.spills.merged()?,
            options: &self.options,
        };
        // What earlier spills were written with is still there.
        let buffer = self.scratch.buffer.capacity().max(sizes.buffer);
        let buffer = buffer.min(self.options.write_buffer_size);
        let mut writer = BufBatchWriter::new_passthrough(&mut output, buffer);
        let mut started = None;
        while let Some(block) = gather.next()? {
            self.options.check_cancelled()?;
            if started != Some(block.partition) {
                started = Some(block.partition);
                spilled.copy_before(block.partition, &mut writer, &mut self.scratch)?;
                spilled.copy(block.partition, &mut writer, &mut self.scratch)?;
            }
            writer.write_rows(block.rows, block.ranges, block.last, &mut self.scratch)?;
            if block.last {
                writer.end_partition(block.partition, &self.scratch)?;
            }
        }
        spilled.copy_before(self.partitions, &mut writer, &mut self.scratch)?;
        writer.drain(&mut self.scratch)?;
        self.scratch.metrics.gather_nanos += gather.nanos;
        self.scratch.metrics.write_nanos += output.write_nanos();
        output.finish_all()
    }

    /// Lets everything go, at the end.
    pub(crate) fn clear(&mut self) -> Staged {
        self.let_go().0
    }
}

fn time_in_blocks(scratch: &ShuffleScratch) -> u64 {
    scratch.metrics.encode_nanos + scratch.metrics.compress_nanos
}

/// What was spilled, on its way to the final file.
struct SpilledRows<'a> {
    spills: &'a SpillWriter,
    extents: MergedExtents<'a>,
    options: &'a ShuffleWriterOptions,
}

impl SpilledRows<'_> {
    /// Copies the extents of `partition`.
    fn copy(
        &mut self,
        partition: usize,
        writer: &mut BufBatchWriter<&mut LocalPartitionWriter>,
        scratch: &mut ShuffleScratch,
    ) -> Result<()> {
        let (spills, options) = (self.spills, self.options);
        self.extents.take(partition, |extent| {
            options.check_cancelled()?;
            writer.copy(extent.length, scratch, |from, bytes| {
                spills.read_extent(extent, from, bytes)
            })
        })
    }

    /// Copies the partitions before `partition`, all of whose rows were spilled, and ends them.
    fn copy_before(
        &mut self,
        partition: usize,
        writer: &mut BufBatchWriter<&mut LocalPartitionWriter>,
        scratch: &mut ShuffleScratch,
    ) -> Result<()> {
        while let Some(next) = self
            .extents
            .next_partition()
            .filter(|next| *next < partition)
        {
            self.copy(next, writer, scratch)?;
            writer.end(scratch)?;
            writer.end_partition(next, scratch)?;
        }
        Ok(())
    }
}
