use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;

use crate::BlockError;

/// A batch that was checked and taken apart for being written, as a whole or in many blocks.
#[derive(Debug)]
pub struct BlockRows {
    schema: SchemaRef,
    columns: Vec<ArrayData>,
    rows: usize,
}

impl BlockRows {
    /// A batch that the reader would reject must not be written in the first place.
    pub(crate) fn new(schema: &SchemaRef, batch: &RecordBatch) -> Result<Self, BlockError> {
        if !Arc::ptr_eq(batch.schema_ref(), schema) {
            check(schema, batch)?;
        }
        Ok(Self {
            schema: SchemaRef::clone(schema),
            columns: batch.columns().iter().map(Array::to_data).collect(),
            rows: batch.num_rows(),
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn columns(&self) -> &[ArrayData] {
        &self.columns
    }
}

fn check(schema: &SchemaRef, batch: &RecordBatch) -> Result<(), BlockError> {
    let fields = schema.fields();
    if batch.num_columns() != fields.len() {
        return Err(BlockError::Schema(format!(
            "expected {} columns, found {}",
            fields.len(),
            batch.num_columns()
        )));
    }
    for (field, column) in fields.iter().zip(batch.columns()) {
        if !field.data_type().equals_datatype(column.data_type()) {
            return Err(BlockError::Schema(format!(
                "column {:?}: expected {}, found {}",
                field.name(),
                field.data_type(),
                column.data_type()
            )));
        }
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(BlockError::Schema(format!(
                "column {:?} is not nullable and has {} nulls",
                field.name(),
                column.null_count()
            )));
        }
    }
    Ok(())
}
