use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use comet_memory::StepReservation;
use datafusion_execution::memory_pool::MemoryReservation;

use crate::metrics::wide;
use crate::partition::Partitioner;
use crate::pinned::Pinned;
use crate::sizes::Sizes;
use crate::{
    BufBatchWriter, LocalPartitionWriter, PartitionOutput, Result, ShuffleMetrics, ShuffleScratch,
    ShuffleWriterOptions,
};

/// Everything goes into one partition, as it comes; small batches share blocks. At most the rows
/// of one block wait in memory, and none if there is no memory for that.
#[derive(Debug)]
pub struct SinglePartitionShuffleWriter {
    writer: BufBatchWriter<LocalPartitionWriter>,
    scratch: ShuffleScratch,
    options: ShuffleWriterOptions,
    reservation: StepReservation,
    /// What the waiting rows keep in memory, and what they were charged with.
    pinned: Pinned,
    pinned_bytes: usize,
    /// What the scratch takes before anything is written.
    fixed_scratch: usize,
    /// What it was charged with.
    overhead: usize,
}

impl SinglePartitionShuffleWriter {
    /// A writer of batches of `schema` whose memory comes from `reservation`. The file is created at
    /// once.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, or blocks cannot hold the schema.
    pub fn new(
        schema: SchemaRef,
        reservation: MemoryReservation,
        options: ShuffleWriterOptions,
    ) -> Result<Self> {
        let scratch = ShuffleScratch::new(SchemaRef::clone(&schema), options.codec)?;
        let output = create(&options, 1)?;
        let write_size = options.write_buffer_size;
        let (rows, bytes) = (options.block_rows, options.max_block_bytes);
        let step = options.reservation_step;
        Ok(Self {
            writer: BufBatchWriter::new(output, write_size, schema, rows, bytes),
            fixed_scratch: scratch.memory_size(),
            scratch,
            reservation: StepReservation::new(reservation, step, options.max_buffer_bytes),
            options,
            pinned: Pinned::default(),
            pinned_bytes: 0,
            overhead: 0,
        })
    }

    /// Writes `batch`.
    ///
    /// # Errors
    ///
    /// If that fails, memory is denied even for writing the batch at once, or the task is killed.
    pub fn insert_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.options.check_cancelled()?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.scratch.metrics.input_batches += 1;
        self.scratch.metrics.rows += wide(batch.num_rows());
        let mut price = self.reserve(batch)?;
        if price.is_none() {
            // Without the rows that wait there may be memory to let these wait.
            self.write_pending()?;
            price = self.reserve(batch)?;
        }
        let Some(price) = price else {
            return self.write_at_once(batch);
        };
        self.pinned_bytes += price;
        let metrics = &mut self.scratch.metrics;
        metrics.peak_buffered_bytes = metrics.peak_buffered_bytes.max(wide(self.pinned_bytes));
        let blocks = metrics.blocks;
        self.writer.write(batch, false, &mut self.scratch)?;
        if self.scratch.metrics.blocks > blocks {
            // All rows that wait now are of this batch.
            self.unpin()?;
            self.pinned_bytes = self.pinned.added_bytes(batch);
            self.reservation.try_grow(self.pinned_bytes)?;
        }
        self.pinned.add(batch);
        Ok(())
    }

    /// Reserves what `batch` pins while its rows wait, and what it takes to write them. Returns the
    /// former, or nothing if there is no memory for that.
    fn reserve(&mut self, batch: &RecordBatch) -> Result<Option<usize>> {
        let price = self.pinned.added_bytes(batch);
        let growth = self.growth(price);
        match self.reservation.try_grow(price.saturating_add(growth)) {
            Ok(()) => {
                self.overhead += growth;
                Ok(Some(price))
            }
            Err(denied) if denied.is_denied() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What writing will take in addition when `bytes` more are pinned.
    fn growth(&self, bytes: usize) -> usize {
        let bytes = self.pinned_bytes.saturating_add(bytes);
        let sizes = Sizes::of_block(&self.options, bytes);
        let scratch = self.fixed_scratch.saturating_add(sizes.scratch());
        let overhead = self.scratch.memory_size().max(scratch);
        overhead.saturating_sub(self.overhead)
    }

    /// Writes `batch` so that nothing of it has to wait.
    fn write_at_once(&mut self, batch: &RecordBatch) -> Result<()> {
        let growth = self.growth(self.pinned.added_bytes(batch));
        self.reservation.try_grow(growth)?;
        self.overhead += growth;
        self.writer.write(batch, false, &mut self.scratch)?;
        self.write_pending()
    }

    fn write_pending(&mut self) -> Result<()> {
        self.writer.write_pending(&mut self.scratch)?;
        self.unpin()
    }

    fn unpin(&mut self) -> Result<()> {
        self.pinned.clear();
        let bytes = std::mem::take(&mut self.pinned_bytes);
        Ok(self.reservation.shrink(bytes)?)
    }

    /// The bytes that are charged: those that waiting rows pin, and scratch.
    pub fn used(&self) -> usize {
        self.reservation.used()
    }

    /// Completes the file and gives all memory back.
    ///
    /// # Errors
    ///
    /// If that fails. No file is left then.
    pub fn finish(mut self) -> Result<(PartitionOutput, ShuffleMetrics)> {
        if self.scratch.metrics.rows > 0 {
            self.writer.end(&mut self.scratch)?;
        }
        self.writer.end_partition(0, &self.scratch)?;
        self.writer.drain(&mut self.scratch)?;
        let output = self.writer.into_sink();
        let mut metrics = self.scratch.metrics;
        metrics.write_nanos += output.write_nanos();
        let output = output.finish_all()?;
        self.reservation.free()?;
        Ok((output, metrics))
    }
}

/// Rows without columns: all there is to a partition is how many they are.
#[derive(Debug)]
pub struct ZeroColumnShuffleWriter {
    partitioner: Box<dyn Partitioner>,
    schema: SchemaRef,
    options: ShuffleWriterOptions,
    ids: Vec<u32>,
    rows: Vec<u64>,
    metrics: ShuffleMetrics,
}

impl ZeroColumnShuffleWriter {
    /// A writer of batches of `schema`, which has no columns.
    pub fn new(
        schema: SchemaRef,
        partitioner: Box<dyn Partitioner>,
        options: ShuffleWriterOptions,
    ) -> Self {
        Self {
            rows: vec![0; partitioner.partitions()],
            partitioner,
            schema,
            options,
            ids: Vec::new(),
            metrics: ShuffleMetrics::default(),
        }
    }

    /// Counts the rows of `batch`.
    ///
    /// # Errors
    ///
    /// If a key cannot be evaluated.
    pub fn insert_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.metrics.input_batches += 1;
        self.metrics.rows += wide(batch.num_rows());
        self.partitioner.assign(batch, &mut self.ids)?;
        for id in &self.ids {
            let rows = usize::try_from(*id).ok();
            if let Some(rows) = rows.and_then(|id| self.rows.get_mut(id)) {
                *rows += 1;
            }
        }
        Ok(())
    }

    /// Writes the file: a block for each partition that has rows.
    ///
    /// # Errors
    ///
    /// If that fails, or the task is killed. No file is left then.
    pub fn finish(self) -> Result<(PartitionOutput, ShuffleMetrics)> {
        let mut scratch = ShuffleScratch::new(SchemaRef::clone(&self.schema), self.options.codec)?;
        scratch.metrics = self.metrics;
        let mut output = create(&self.options, self.rows.len())?;
        let write_size = self.options.write_buffer_size;
        let mut writer = BufBatchWriter::new_passthrough(&mut output, write_size);
        // Spark counts the rows of a batch in an int.
        let most = u64::from(i32::MAX.cast_unsigned());
        for (partition, rows) in self.rows.iter().enumerate() {
            let mut left = *rows;
            while left > 0 {
                self.options.check_cancelled()?;
                let rows = left.min(most);
                left -= rows;
                let count = usize::try_from(rows).unwrap_or(0);
                let options = RecordBatchOptions::new().with_row_count(Some(count));
                let schema = SchemaRef::clone(&self.schema);
                let block = RecordBatch::try_new_with_options(schema, Vec::new(), &options)?;
                writer.write(&block, left == 0, &mut scratch)?;
            }
            if *rows > 0 {
                writer.end_partition(partition, &scratch)?;
            }
        }
        writer.drain(&mut scratch)?;
        let mut metrics = scratch.metrics;
        metrics.write_nanos += output.write_nanos();
        Ok((output.finish_all()?, metrics))
    }
}

fn create(options: &ShuffleWriterOptions, partitions: usize) -> Result<LocalPartitionWriter> {
    LocalPartitionWriter::create(options.data_path.clone(), partitions, options.checksum)
}
