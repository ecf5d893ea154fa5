use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::metrics::wide;
use crate::partition::Partitioner;
use crate::{
    BufBatchWriter, LocalPartitionWriter, PartitionOutput, Result, ShuffleMetrics, ShuffleScratch,
    ShuffleWriterOptions,
};

/// Everything goes into one partition, as it comes; small batches share blocks. At most the rows
/// of one block wait in memory.
#[derive(Debug)]
pub struct SinglePartitionShuffleWriter {
    writer: BufBatchWriter<LocalPartitionWriter>,
    scratch: ShuffleScratch,
    options: ShuffleWriterOptions,
}

impl SinglePartitionShuffleWriter {
    /// A writer of batches of `schema`. The file is created at once.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, or blocks cannot hold the schema.
    pub fn new(schema: SchemaRef, options: ShuffleWriterOptions) -> Result<Self> {
        let scratch = ShuffleScratch::new(SchemaRef::clone(&schema), options.codec)?;
        let output = create(&options, 1)?;
        let write_size = options.write_buffer_size;
        Ok(Self {
            writer: BufBatchWriter::new(output, write_size, schema, options.block_rows),
            scratch,
            options,
        })
    }

    /// Writes `batch`.
    ///
    /// # Errors
    ///
    /// If that fails, or the task is killed.
    pub fn insert_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.options.check_cancelled()?;
        self.scratch.metrics.input_batches += 1;
        self.scratch.metrics.rows += wide(batch.num_rows());
        self.writer.write(batch, false, &mut self.scratch)
    }

    /// Completes the file.
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
        Ok((output.finish_all()?, metrics))
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
