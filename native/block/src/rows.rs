use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;

use crate::BlockError;
use crate::column::{Column, malformed};

/// Batches that were checked and taken apart, so that blocks of any of their rows can be written for
/// little more than what their bytes cost.
#[derive(Debug)]
pub struct BlockRows {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The number of rows of each batch.
    lengths: Vec<usize>,
}

/// Rows of one of the batches that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRange {
    /// The batch.
    pub batch: usize,
    /// Its first row.
    pub start: usize,
    /// The number of rows.
    pub length: usize,
}

impl BlockRows {
    /// Takes batches apart that are to be written by a writer of `schema`: of the very object, since
    /// what is checked here is not checked again.
    ///
    /// # Errors
    ///
    /// [`BlockError::Schema`] if a batch has other types than the schema.
    pub fn new(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, BlockError> {
        for batch in batches {
            // A batch that the reader would reject must not be written in the first place.
            if !Arc::ptr_eq(batch.schema_ref(), schema) {
                check(schema, batch)?;
            }
        }
        let columns = schema.fields().iter().enumerate().map(|(index, field)| {
            let arrays = batches
                .iter()
                .filter_map(|batch| batch.columns().get(index));
            Column::new(field.data_type(), arrays.map(Array::to_data).collect())
        });
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
            schema: SchemaRef::clone(schema),
            lengths: batches.iter().map(RecordBatch::num_rows).collect(),
        })
    }

    /// Puts another batch in the place of the one at `index`.
    ///
    /// # Errors
    ///
    /// [`BlockError::Schema`] if the batch has other types than the schema, or there is no such
    /// place.
    pub fn replace(&mut self, index: usize, batch: &RecordBatch) -> Result<(), BlockError> {
        if !Arc::ptr_eq(batch.schema_ref(), &self.schema) {
            check(&self.schema, batch)?;
        }
        let length = self.lengths.get_mut(index).ok_or_else(malformed)?;
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            column.replace(index, array.to_data())?;
        }
        *length = batch.num_rows();
        Ok(())
    }

    /// About how many bytes `range` takes in a block; 0 if there is no such range.
    pub fn bytes(&self, range: RowRange) -> usize {
        let columns = self.columns.iter();
        columns.fold(0, |sum, column| sum.saturating_add(column.bytes(range)))
    }

    /// About how many bytes a row takes in a block at most.
    pub fn widest_row(&self) -> usize {
        let columns = self.columns.iter();
        columns.fold(0, |sum, column| sum.saturating_add(column.widest()))
    }

    /// Whether all of `ranges` are there.
    pub(crate) fn contain(&self, ranges: &[RowRange]) -> bool {
        ranges.iter().all(|range| {
            let length = self.lengths.get(range.batch);
            let end = range.start.checked_add(range.length);
            length.zip(end).is_some_and(|(length, end)| end <= *length)
        })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn columns(&self) -> &[Column] {
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
