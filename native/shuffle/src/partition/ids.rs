use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::{Partitioner, partition_count};
use crate::{Result, ShuffleError};

/// Takes the partitions of rows from the last column of their batch, which is not written.
#[derive(Debug)]
pub struct IdPartitioner {
    partitions: u32,
}

impl IdPartitioner {
    /// A partitioner of batches of `schema`, whose last column holds the partitions.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Unsupported`] if that column is no `Int32`, or there is no such number of
    /// partitions.
    pub fn new(partitions: usize, schema: &Schema) -> Result<Self> {
        let last = schema.fields().last().map(|field| field.data_type());
        if last != Some(&DataType::Int32) {
            let what = format!("partition ids in a last column of type {last:?}");
            return Err(ShuffleError::Unsupported(what));
        }
        Ok(Self {
            partitions: partition_count(partitions)?,
        })
    }
}

impl Partitioner for IdPartitioner {
    fn partitions(&self) -> usize {
        usize::try_from(self.partitions).unwrap_or(1)
    }

    fn assign(&mut self, batch: &RecordBatch, ids: &mut Vec<u32>) -> Result<()> {
        const NO_IDS: ShuffleError = ShuffleError::Internal("a batch without partition ids");
        let column = batch.columns().last().ok_or(NO_IDS)?;
        let column = column.as_primitive_opt::<Int32Type>().ok_or(NO_IDS)?;
        if column.null_count() > 0 {
            return Err(NO_IDS);
        }
        ids.clear();
        for id in column.values() {
            let id = u32::try_from(*id).ok().filter(|id| *id < self.partitions);
            ids.push(id.ok_or(ShuffleError::Internal("partition id out of range"))?);
        }
        Ok(())
    }

    fn written_columns(&self, columns: usize) -> usize {
        columns.saturating_sub(1)
    }
}
