//! Batches of a task to its shuffle output.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use comet_block::Codec;
use comet_memory::{
    ConsumerStats, FairUnifiedPool, GreedyUnifiedPool, SparkMemory, TaskMemoryPool,
};
use comet_row::{SparkSchema, unsafe_row_bytes};
use comet_shuffle_writer::{
    ChecksumAlgorithm, ShuffleError, ShuffleOutput, ShufflePartitioning, ShuffleWriterExec,
    ShuffleWriterOptions,
};
use comet_vector::{VectorError, VectorImporter};
use datafusion_common::DataFusionError;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::LexOrdering;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, executor, stream};

use crate::error::BridgeError;
use crate::partitioning;
use crate::task::JavaTask;

/// How the JVM wants the shuffle written; see `Native.newShuffleWriter`.
pub(crate) struct WriterSettings {
    pub(crate) data_file: String,
    pub(crate) codec: Codec,
    pub(crate) block_rows: usize,
    pub(crate) max_block_bytes: usize,
    pub(crate) write_buffer_size: usize,
    pub(crate) max_buffer_bytes: Option<usize>,
    pub(crate) checksum: ChecksumAlgorithm,
    pub(crate) fair_pool: bool,
}

/// A plan of one task: its batches into a [`ShuffleWriterExec`], on the task's memory.
pub(crate) struct NativeShuffleWriter {
    exec: ShuffleWriterExec,
    context: Arc<TaskContext>,
    pool: Arc<dyn TaskMemoryPool>,
    source: Arc<BatchSource>,
}

/// What a run of the writer did.
pub(crate) struct WriterReport {
    pub(crate) output: ShuffleOutput,
    /// The bytes of the rows as UnsafeRows.
    pub(crate) row_bytes: u64,
    pub(crate) import_nanos: u64,
    pub(crate) consumers: Vec<ConsumerStats>,
}

impl NativeShuffleWriter {
    pub(crate) fn new(
        descriptor: &[u8],
        partitioning: &[u8],
        settings: WriterSettings,
        task: Arc<JavaTask>,
    ) -> Result<Self, BridgeError> {
        let schema = SparkSchema::parse(descriptor)?;
        let partitioning = partitioning::parse(partitioning, &schema.arrow_schema())?;
        let with_ids = matches!(partitioning, ShufflePartitioning::Ids { .. });
        let source = Arc::new(BatchSource {
            importer: VectorImporter::new(&schema.arrow_schema(), with_ids),
            schema,
            task: Arc::clone(&task),
            row_bytes: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        });
        let input = StreamingTableExec::try_new(
            Arc::clone(source.importer.schema()),
            vec![Arc::new(TaskBatches(Arc::clone(&source)))],
            None,
            None::<LexOrdering>,
            false,
            None,
        )?;
        let pool: Arc<dyn TaskMemoryPool> = if settings.fair_pool {
            Arc::new(FairUnifiedPool::new(Arc::clone(&task) as Arc<_>))
        } else {
            Arc::new(GreedyUnifiedPool::new(Arc::clone(&task) as Arc<_>))
        };
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(&pool) as Arc<_>)
            .build_arc()?;
        let options = writer_options(settings, task);
        Ok(Self {
            exec: ShuffleWriterExec::try_new(Arc::new(input), partitioning, options)?,
            context: Arc::new(TaskContext::default().with_runtime(runtime)),
            pool,
            source,
        })
    }

    /// Reads all batches of the task and writes its output.
    pub(crate) fn run(&self) -> Result<WriterReport, BridgeError> {
        let mut written = self.exec.execute(0, Arc::clone(&self.context))?;
        // It has no batches; all is done by waiting for its end, on this thread.
        while let Some(failed) = executor::block_on(written.next()) {
            failed?;
        }
        // The writer goes, and with it what it has reserved.
        drop(written);
        self.pool.check().map_err(ShuffleError::from)?;
        let output = self.exec.take_output();
        Ok(WriterReport {
            output: output
                .ok_or_else(|| BridgeError::Argument("the writer ran before".to_owned()))?,
            row_bytes: self.source.row_bytes.load(Ordering::Relaxed),
            import_nanos: self.source.nanos.load(Ordering::Relaxed),
            consumers: self.pool.stats(),
        })
    }

    /// Spills for another consumer of the task's memory, on any thread.
    pub(crate) fn spill(&self, bytes: usize) -> Result<usize, BridgeError> {
        match self.exec.spill_handle() {
            Some(handle) => Ok(handle.spill(bytes)?),
            None => Ok(0),
        }
    }

    /// Who had how much memory, as a table.
    pub(crate) fn memory_table(&self) -> String {
        self.pool.table()
    }
}

fn writer_options(settings: WriterSettings, task: Arc<JavaTask>) -> ShuffleWriterOptions {
    let mut options = ShuffleWriterOptions::new(PathBuf::from(settings.data_file), settings.codec);
    options.block_rows = settings.block_rows;
    options.max_block_bytes = settings.max_block_bytes;
    options.write_buffer_size = settings.write_buffer_size;
    options.max_buffer_bytes = settings.max_buffer_bytes;
    options.checksum = settings.checksum;
    let spilling = Arc::clone(&task);
    options.spill_path = Arc::new(move || {
        let path = spilling.spill_file().map_err(io::Error::other)?;
        Ok(PathBuf::from(path))
    });
    options.is_cancelled = Arc::new(move || task.is_killed());
    options
}

/// Batches of up to this size are never cut.
const MIN_BATCH_BYTES: usize = 64 << 10;
/// A task may hold at least this many batches.
const MIN_BATCHES: usize = 8;

/// Where a task's batches come from.
#[derive(Debug)]
struct BatchSource {
    schema: SparkSchema,
    importer: VectorImporter,
    task: Arc<JavaTask>,
    /// The bytes of all rows so far, as UnsafeRows.
    row_bytes: AtomicU64,
    /// The time that importing took.
    nanos: AtomicU64,
}

impl BatchSource {
    fn next(&self) -> Result<Option<RecordBatch>, DataFusionError> {
        // A batch is the least that is staged, so it has to be small beside what the task may have.
        let budget = MIN_BATCH_BYTES.max(self.task.task_limit()? / MIN_BATCHES);
        let next = self.task.next_batch(budget);
        let mut descriptor = next.map_err(DataFusionError::External)?;
        if descriptor == 0 {
            return Ok(None);
        }
        let started = Instant::now();
        let batch = loop {
            // SAFETY: the task keeps the descriptor, and what it refers to, until the next call, and
            // forgets what it hands over.
            match unsafe { self.importer.import(descriptor, self.task.as_ref(), budget) } {
                Ok(batch) => break batch,
                Err(VectorError::TooLarge { .. } | VectorError::OverBudget) => {
                    descriptor = self.task.split_batch().map_err(DataFusionError::External)?;
                }
                Err(error) => return Err(DataFusionError::External(error.into())),
            }
        };
        let bytes = unsafe_row_bytes(&self.schema, &batch);
        self.row_bytes.fetch_add(bytes, Ordering::Relaxed);
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        Ok(Some(batch))
    }
}

/// The task's batches as the input of a plan.
#[derive(Debug)]
struct TaskBatches(Arc<BatchSource>);

impl PartitionStream for TaskBatches {
    fn schema(&self) -> &SchemaRef {
        self.0.importer.schema()
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let source = Arc::clone(&self.0);
        let batches = std::iter::from_fn(move || source.next().transpose());
        let schema = Arc::clone(self.schema());
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
    }
}
