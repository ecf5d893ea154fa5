//! Which partition a row belongs to.

mod cells;
mod hash;
mod ids;
mod murmur;
mod normalize;
mod range;
mod round_robin;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef, SortOptions};
use datafusion_physical_expr::PhysicalExpr;

pub use hash::HashPartitioner;
pub use ids::IdPartitioner;
pub use range::RangePartitioner;
pub use round_robin::RoundRobinPartitioner;

use crate::{Result, ShuffleError};

/// The most partitions of a shuffle: as many as Spark's serialized sort takes.
pub const MAX_PARTITIONS: usize = 1 << 24;

/// Computes partition ids.
pub trait Partitioner: Send {
    /// The number of partitions.
    fn partitions(&self) -> usize;

    /// Puts the partition of every row of `batch` into `ids`, which is cleared first.
    ///
    /// # Errors
    ///
    /// If a key cannot be evaluated.
    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()>;

    /// How many of a batch's columns are written, from the first on.
    fn written_columns(&self, columns: usize) -> usize {
        columns
    }

    /// The bytes that grow with the batches, which the task is charged with.
    fn memory_size(&self) -> usize {
        0
    }
}

/// How an exchange spreads rows.
#[derive(Debug, Clone)]
pub enum ShufflePartitioning {
    /// Everything into one partition.
    Single,
    /// By Spark's Murmur3 of the keys.
    Hash {
        /// The keys, in Spark's order.
        keys: Vec<Arc<dyn PhysicalExpr>>,
        /// The number of partitions.
        partitions: usize,
    },
    /// By where the keys lie among the bounds.
    Range {
        /// The sort keys with their directions.
        keys: Vec<(Arc<dyn PhysicalExpr>, SortOptions)>,
        /// The upper bounds of all partitions but the last, ascending in the keys' order: a column
        /// for each key.
        bounds: RecordBatch,
        /// The number of partitions, which may be more than the bounds tell apart.
        partitions: usize,
    },
    /// Row after row to the next partition.
    RoundRobin {
        /// The number of partitions.
        partitions: usize,
        /// The partition before that of the first row.
        start: usize,
    },
    /// As the caller says: the last column of each batch, of type `Int32` and without nulls, holds
    /// the partitions of its rows and is not written.
    Ids {
        /// The number of partitions.
        partitions: usize,
    },
}

impl ShufflePartitioning {
    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        match self {
            Self::Single => 1,
            Self::Hash { partitions, .. }
            | Self::Range { partitions, .. }
            | Self::RoundRobin { partitions, .. }
            | Self::Ids { partitions } => *partitions,
        }
    }

    /// The partitioner for batches of `schema`.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Unsupported`] if Spark's placement of these keys isn't known here, or the
    /// number of partitions is none that Spark has.
    pub fn partitioner(&self, schema: &Schema) -> Result<Box<dyn Partitioner>> {
        let partitions = self.partitions();
        if partitions == 0 || partitions > MAX_PARTITIONS {
            return Err(ShuffleError::Unsupported(format!(
                "{partitions} partitions"
            )));
        }
        Ok(match self {
            Self::Single => Box::new(HashPartitioner::new(Vec::new(), 1, schema)?),
            Self::Hash { keys, partitions } => {
                Box::new(HashPartitioner::new(keys.clone(), *partitions, schema)?)
            }
            Self::Range {
                keys,
                bounds,
                partitions,
            } => Box::new(RangePartitioner::new(keys, bounds, *partitions, schema)?),
            Self::RoundRobin { partitions, start } => {
                Box::new(RoundRobinPartitioner::new(*partitions, *start)?)
            }
            Self::Ids { partitions } => Box::new(IdPartitioner::new(*partitions, schema)?),
        })
    }
}

/// `batch` without the columns that are not written.
pub(crate) fn written(batch: &RecordBatch, partitioner: &dyn Partitioner) -> Result<RecordBatch> {
    let columns = batch.num_columns();
    match partitioner.written_columns(columns) {
        all if all == columns => Ok(batch.clone()),
        fewer => Ok(batch.project(&(0..fewer).collect::<Vec<_>>())?),
    }
}

/// The schema of what is written of batches of `schema`.
pub(crate) fn written_schema(schema: &Schema, partitioner: &dyn Partitioner) -> Result<SchemaRef> {
    let columns = partitioner.written_columns(schema.fields().len());
    let columns = (0..columns).collect::<Vec<_>>();
    Ok(Arc::new(schema.project(&columns)?))
}

fn evaluate(keys: &[Arc<dyn PhysicalExpr>], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    let values = keys.iter().map(|key| {
        let value = key.evaluate(batch)?;
        Ok(value.into_array(batch.num_rows())?)
    });
    values.collect()
}

fn partition_count(partitions: usize) -> Result<u32> {
    u32::try_from(partitions)
        .ok()
        .filter(|count| (1..=MAX_PARTITIONS).contains(&partitions) && *count > 0)
        .ok_or_else(|| ShuffleError::Unsupported(format!("{partitions} partitions")))
}
