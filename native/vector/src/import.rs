use std::sync::Arc;

use arrow_array::{Int32Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::VectorError;
use crate::column;
use crate::descriptor::Numbers;
use crate::heap::JavaHeap;

/// The name of the column of partition ids, which comes behind all others.
pub const PARTITION_ID_FIELD: &str = "partition id";

/// Imports the batches of one schema.
#[derive(Debug)]
pub struct VectorImporter {
    columns: usize,
    schema: SchemaRef,
}

impl VectorImporter {
    /// An importer of batches of `schema`; `with_ids` adds a column of the partition ids that come
    /// with each batch.
    pub fn new(schema: &SchemaRef, with_ids: bool) -> Self {
        let columns = schema.fields().len();
        let schema = if with_ids {
            let id = Field::new(PARTITION_ID_FIELD, DataType::Int32, false);
            let fields = schema.fields().iter().cloned();
            Arc::new(Schema::new(
                fields.chain([Arc::new(id)]).collect::<Vec<_>>(),
            ))
        } else {
            Arc::clone(schema)
        };
        Self { columns, schema }
    }

    /// The schema of imported batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Copies the batch whose descriptor lies at `address`; `heap` has the arrays that it refers to.
    /// If it has more than one row, it may take `budget` bytes, which is known before they are copied.
    /// Exported arrays that it names are taken over; who exported them still has to release them.
    /// Memory that it hands over is taken over too, and its address in the descriptor is 0 then.
    ///
    /// # Errors
    ///
    /// [`VectorError::TooLarge`] if it doesn't fit 32-bit offsets, [`VectorError::OverBudget`] if it
    /// would take more than `budget`, [`VectorError::Descriptor`] or
    /// [`VectorError::Arrow`] if the descriptor does not describe a batch of the schema,
    /// [`VectorError::Heap`] if the JVM's arrays cannot be read.
    ///
    /// # Safety
    ///
    /// There must be a descriptor at `address`, and at each address in it what the crate's
    /// documentation says, all of it unchanged until this returns.
    pub unsafe fn import(
        &self,
        address: i64,
        heap: &dyn JavaHeap,
        budget: usize,
    ) -> Result<RecordBatch, VectorError> {
        // SAFETY: the caller vouches for the descriptor.
        let mut numbers = unsafe { Numbers::at(address, heap) }?;
        let rows = numbers.next_count()?;
        if rows > 1 {
            numbers.limit(budget);
        }
        let with_ids = self.columns < self.schema.fields().len();
        let ids = if with_ids {
            // SAFETY: the caller vouches for an id for each row.
            unsafe { numbers.next_values::<i32>(rows) }?
        } else {
            numbers.next()?;
            Vec::new()
        };
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields().iter().take(self.columns) {
            // SAFETY: the caller vouches for what the numbers say.
            arrays.push(unsafe { column::import(field.data_type(), rows, &mut numbers) }?);
        }
        numbers.end()?;
        if with_ids {
            arrays.push(Arc::new(Int32Array::from(ids)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}
