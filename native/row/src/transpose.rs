//! Rows in, a record batch out.

use arrow_array::{RecordBatch, RecordBatchOptions};

use crate::columns::{RowColumns, Shared};
use crate::error::RowError;
use crate::row::UnsafeRowRef;
use crate::schema::SparkSchema;

/// The most row bytes in a batch, so that offsets into any column fit in 32 bits.
const MAX_BATCH_BYTES: usize = i32::MAX as usize;

/// Turns rows of one schema into record batches. Scratch memory is kept from batch to batch.
#[derive(Debug)]
pub struct RowTransposer {
    schema: SparkSchema,
    columns: RowColumns,
    shared: Shared,
}

impl RowTransposer {
    /// A transposer for rows of this schema.
    ///
    /// # Errors
    ///
    /// None today; a schema that can't be carried would be one.
    pub fn new(schema: SparkSchema) -> Result<Self, RowError> {
        let columns = RowColumns::new(schema.fields());
        Ok(Self {
            schema,
            columns,
            shared: Shared::default(),
        })
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &SparkSchema {
        &self.schema
    }

    /// Copies rows into a batch of as many rows, with [`SparkSchema::arrow_schema`]. Its arrays are
    /// unsliced, and one has a null bitmap only if it has a null. The batch refers to no row memory.
    ///
    /// # Errors
    ///
    /// - [`RowError::BatchTooLarge`] if the rows are together larger than `i32::MAX` bytes, found
    ///   before anything is built: split the rows in halves and call again.
    /// - [`RowError::Malformed`] if a row contradicts itself or the schema.
    ///
    /// The transposer can be used on after an error.
    ///
    /// # Safety
    ///
    /// Each row's memory must be as [`UnsafeRowRef::from_raw`] demands until this returns.
    pub unsafe fn transpose(&mut self, rows: &[UnsafeRowRef]) -> Result<RecordBatch, RowError> {
        let bytes = rows
            .iter()
            .fold(0_usize, |sum, row| sum.saturating_add(row.len));
        if bytes > MAX_BATCH_BYTES {
            let limit = MAX_BATCH_BYTES;
            return Err(RowError::BatchTooLarge {
                rows: rows.len(),
                bytes,
                limit,
            });
        }
        self.shared.budget = bytes;
        self.columns.begin(rows.len());
        // SAFETY: the caller vouches for the rows.
        let appended = unsafe { self.columns.append(rows, &mut self.shared) };
        appended.map_err(RowError::or_whole_row)?;
        let arrays = self.columns.finish()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(
            self.schema.arrow_schema(),
            arrays,
            &options,
        )?)
    }
}
