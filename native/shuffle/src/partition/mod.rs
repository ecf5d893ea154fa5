//! Which partition a row belongs to.

mod cells;
mod hash;
mod identity;
mod murmur;
mod normalize;
mod range;
mod round_robin;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SortOptions};
use datafusion_physical_expr::PhysicalExpr;

pub use hash::HashPartitioner;
pub use range::RangePartitioner;
pub use round_robin::RoundRobinPartitioner;

use crate::{Result, ShuffleError};

/// The most partitions that Spark's shuffle has.
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

    /// The bytes that the partitioner keeps between batches.
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
    /// Evenly; the same rows in whatever order and batches are placed the same way.
    RoundRobin {
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
            | Self::RoundRobin { partitions } => *partitions,
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
            Self::RoundRobin { partitions } => Box::new(RoundRobinPartitioner::new(*partitions)?),
        })
    }
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
