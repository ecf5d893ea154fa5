use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool};

use crate::partition::written_schema;
use crate::{
    MultiPartitionShuffleRepartitioner, PartitionOutput, Result, ShuffleMetrics,
    ShufflePartitioning, ShuffleWriterOptions, SinglePartitionShuffleWriter, SpillHandle,
    ZeroColumnShuffleWriter,
};

/// What a map task wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShuffleOutput {
    /// The partitions' lengths and checksums.
    pub partitions: PartitionOutput,
    /// What it took.
    pub metrics: ShuffleMetrics,
}

/// Writes the shuffle output of one task: batches are pushed in, one file comes out.
#[derive(Debug)]
pub struct ShuffleWriter {
    path: Path,
}

/// The path that the partitioning and the columns take.
#[derive(Debug)]
enum Path {
    Multi(Box<MultiPartitionShuffleRepartitioner>),
    Single(Box<SinglePartitionShuffleWriter>),
    ZeroColumns(Box<ZeroColumnShuffleWriter>),
}

impl ShuffleWriter {
    /// A writer of batches of `schema` with memory from `pool`.
    ///
    /// # Errors
    ///
    /// If the partitioning or a type is not supported, or a file or codec cannot be set up.
    pub fn new(
        schema: SchemaRef,
        partitioning: &ShufflePartitioning,
        pool: &Arc<dyn MemoryPool>,
        options: ShuffleWriterOptions,
    ) -> Result<Self> {
        let partitioner = partitioning.partitioner(&schema)?;
        let written = written_schema(&schema, partitioner.as_ref())?;
        let path = if written.fields().is_empty() {
            Path::ZeroColumns(Box::new(ZeroColumnShuffleWriter::new(
                written,
                partitioner,
                options,
            )))
        } else {
            let consumer = MemoryConsumer::new("ShuffleWriter").with_can_spill(true);
            let reservation = consumer.register(pool);
            if partitioner.partitions() == 1 && written == schema {
                Path::Single(Box::new(SinglePartitionShuffleWriter::new(
                    written,
                    reservation,
                    options,
                )?))
            } else {
                Path::Multi(Box::new(MultiPartitionShuffleRepartitioner::new(
                    schema,
                    partitioner,
                    reservation,
                    options,
                )?))
            }
        };
        Ok(Self { path })
    }

    /// Takes a batch.
    ///
    /// # Errors
    ///
    /// If it cannot be staged, spilled or written; memory errors are
    /// [`crate::ShuffleError::Memory`].
    pub fn insert_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.path {
            Path::Multi(writer) => writer.insert_batch(batch),
            Path::Single(writer) => writer.insert_batch(batch),
            Path::ZeroColumns(writer) => writer.insert_batch(batch),
        }
    }

    /// What makes this writer spill, if it stages anything.
    pub fn spill_handle(&self) -> Option<SpillHandle> {
        match &self.path {
            Path::Multi(writer) => Some(writer.spill_handle()),
            Path::Single(_) | Path::ZeroColumns(_) => None,
        }
    }

    /// Completes the data file. Drop the writer instead to give up: no file is left then.
    ///
    /// # Errors
    ///
    /// If a file cannot be written or read, or the task is killed. No file is left then.
    pub fn finish(self) -> Result<ShuffleOutput> {
        let (partitions, metrics) = match self.path {
            Path::Multi(writer) => writer.finish()?,
            Path::Single(writer) => writer.finish()?,
            Path::ZeroColumns(writer) => writer.finish()?,
        };
        Ok(ShuffleOutput {
            partitions,
            metrics,
        })
    }
}
