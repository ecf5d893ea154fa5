use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, exec_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};

use crate::{ShuffleOutput, ShufflePartitioning, ShuffleWriter, ShuffleWriterOptions, SpillHandle};

/// Writes its input as one map task's shuffle output. Its stream has no batches: when it has
/// ended, [`ShuffleWriterExec::take_output`] has the result.
#[derive(Debug)]
pub struct ShuffleWriterExec {
    input: Arc<dyn ExecutionPlan>,
    partitioning: ShufflePartitioning,
    options: ShuffleWriterOptions,
    properties: Arc<PlanProperties>,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Debug, Default)]
struct Progress {
    started: bool,
    spill: Option<SpillHandle>,
    output: Option<ShuffleOutput>,
}

impl ShuffleWriterExec {
    /// Writes `input`, which must have one partition: a Spark task runs one.
    ///
    /// # Errors
    ///
    /// If the input has more partitions, or the partitioning isn't supported.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        partitioning: ShufflePartitioning,
        options: ShuffleWriterOptions,
    ) -> Result<Self> {
        let inputs = input.properties().output_partitioning().partition_count();
        if inputs != 1 {
            return exec_err!("a shuffle writer with {inputs} input partitions");
        }
        partitioning.partitioner(&input.schema())?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Self {
            input,
            partitioning,
            options,
            properties: Arc::new(properties),
            progress: Arc::default(),
        })
    }

    /// The result, once the stream has ended.
    pub fn take_output(&self) -> Option<ShuffleOutput> {
        lock(&self.progress).output.take()
    }

    /// What makes the writer spill, while it runs and stages anything.
    pub fn spill_handle(&self) -> Option<SpillHandle> {
        lock(&self.progress).spill.clone()
    }
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write(
    mut input: SendableRecordBatchStream,
    mut writer: ShuffleWriter,
    progress: Arc<Mutex<Progress>>,
) -> Result<()> {
    while let Some(batch) = input.next().await {
        writer.insert_batch(&batch?)?;
    }
    let output = writer.finish()?;
    lock(&progress).output = Some(output);
    Ok(())
}

impl DisplayAs for ShuffleWriterExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.partitioning.partitions();
        let kind = match &self.partitioning {
            ShufflePartitioning::Single => "single",
            ShufflePartitioning::Hash { .. } => "hash",
            ShufflePartitioning::Range { .. } => "range",
            ShufflePartitioning::RoundRobin { .. } => "round robin",
            ShufflePartitioning::Ids { .. } => "ids",
        };
        write!(f, "ShuffleWriterExec: {kind}, {partitions} partitions")
    }
}

impl ExecutionPlan for ShuffleWriterExec {
    fn name(&self) -> &str {
        "ShuffleWriterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let keys: Vec<_> = match &self.partitioning {
            ShufflePartitioning::Hash { keys, .. } => keys.iter().collect(),
            ShufflePartitioning::Range { keys, .. } => keys.iter().map(|(key, _)| key).collect(),
            ShufflePartitioning::Single
            | ShufflePartitioning::RoundRobin { .. }
            | ShufflePartitioning::Ids { .. } => Vec::new(),
        };
        let mut recursion = TreeNodeRecursion::Continue;
        for key in keys {
            recursion = f(key)?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return exec_err!("a shuffle writer has one child");
        };
        let options = self.options.clone();
        let new = Self::try_new(input, self.partitioning.clone(), options)?;
        Ok(Arc::new(new))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        {
            let mut progress = lock(&self.progress);
            if partition != 0 || progress.started {
                return exec_err!("a shuffle writer runs once");
            }
            progress.started = true;
        }
        let schema = self.schema();
        let options = self.options.clone();
        let pool = context.memory_pool();
        let writer = ShuffleWriter::new(self.input.schema(), &self.partitioning, pool, options)?;
        lock(&self.progress).spill = writer.spill_handle();
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let written = write(input, writer, Arc::clone(&self.progress));
        let written = stream::once(written)
            .filter_map(|result| async move { result.err().map(Err::<RecordBatch, _>) });
        let schema = SchemaRef::clone(&schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, written)))
    }
}
