use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion_physical_expr::PhysicalExpr;

use super::murmur::{SEED, pmod};
use super::{Partitioner, cells, evaluate, partition_count};
use crate::Result;

/// Spark's `HashPartitioning`: Murmur3 with seed 42 chained over the keys, then `pmod`.
///
/// Calendar intervals and strings with a collation must not come here: how Spark hashes them
/// depends on its version and on ICU, and their Arrow types don't tell them from others.
#[derive(Debug)]
pub struct HashPartitioner {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    divisor: i32,
}

impl HashPartitioner {
    /// A partitioner by `keys` of batches of `schema`.
    ///
    /// # Errors
    ///
    /// [`crate::ShuffleError::Unsupported`] if a key has a type whose hash in Spark isn't known
    /// here, or there is no such number of partitions.
    pub fn new(
        keys: Vec<Arc<dyn PhysicalExpr>>,
        partitions: usize,
        schema: &Schema,
    ) -> Result<Self> {
        for key in &keys {
            cells::check(&key.data_type(schema)?)?;
        }
        Ok(Self {
            keys,
            divisor: partition_count(partitions)?.cast_signed(),
        })
    }
}

impl Partitioner for HashPartitioner {
    fn partitions(&self) -> usize {
        usize::try_from(self.divisor).unwrap_or(1)
    }

    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        ids.clear();
        ids.resize(batch.num_rows(), SEED);
        for key in evaluate(&self.keys, batch)? {
            cells::cells(&key)?.fold_all(ids);
        }
        for id in ids {
            *id = pmod(*id, self.divisor);
        }
        Ok(())
    }
}
