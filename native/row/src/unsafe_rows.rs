//! Record batches back to UnsafeRows, as Spark's `UnsafeProjection` would make them.
//!
//! Rows lie one behind the other in one buffer; the layout is drawn in the crate's documentation. They
//! are made in chunks that fit the fastest cache. What the rows of a chunk take is measured column by
//! column, then they are filled, again column by column, so that the type of a column is looked at once
//! per chunk. Every byte of a row is written: slots of nulls and padding are zero.

mod columns;
mod measure;
mod sink;
mod values;
mod words;

use arrow_array::RecordBatch;

use crate::error::RowError;
use crate::schema::SparkSchema;
use measure::{Holder, fixed_words};
use sink::{From, RowPlace};
use values::Column;
use words::{WORD, Words};

/// Rows that are filled together: all their columns stay in the first-level cache.
const CHUNK_ROWS: usize = 128;

/// The largest row, since Spark has sizes in 32 bits.
const MAX_ROW_BYTES: usize = i32::MAX as usize;

/// Turns record batches into UnsafeRows. Its memory is kept from call to call.
#[derive(Debug)]
pub struct UnsafeRowWriter {
    schema: SparkSchema,
    words: Words,
    row_words: Vec<usize>,
    lengths: Vec<i32>,
    places: Vec<RowPlace>,
    /// Words that rows have been given.
    filled: usize,
}

/// Consecutive UnsafeRows in one buffer, aligned to 8 bytes.
#[derive(Debug, Clone, Copy)]
pub struct UnsafeRows<'a> {
    /// Where the first row begins; each row begins where the one before ends.
    pub address: *const u8,
    /// Bytes of each row, multiples of 8.
    pub lengths: &'a [i32],
    /// Bytes of native memory that the writer has.
    pub memory: usize,
}

impl UnsafeRowWriter {
    /// A writer of rows of this schema.
    pub fn new(schema: SparkSchema) -> Self {
        Self {
            schema,
            words: Words::default(),
            row_words: Vec::new(),
            lengths: Vec::new(),
            places: Vec::new(),
            filled: 0,
        }
    }

    /// Writes rows of `batch` from `first` on: at most `max_rows`, and no more than fit into
    /// `max_bytes` unless the first alone does not. They are valid until the next call.
    ///
    /// # Errors
    ///
    /// - [`RowError::Malformed`] if a column's type isn't the one of [`SparkSchema::arrow_schema`].
    /// - [`RowError::RowTooLarge`] if a row takes more than `i32::MAX` bytes.
    pub fn write(
        &mut self,
        batch: &RecordBatch,
        first: usize,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<UnsafeRows<'_>, RowError> {
        let mut columns =
            Column::all(self.schema.fields(), batch.columns()).map_err(RowError::or_whole_row)?;
        let rows = batch.num_rows().saturating_sub(first).min(max_rows);
        self.lengths.clear();
        self.filled = 0;
        let mut more = true;
        while more && self.lengths.len() < rows {
            let from = first + self.lengths.len();
            let count = CHUNK_ROWS.min(rows - self.lengths.len());
            more = self.measure(&mut columns, from, count, max_bytes / WORD)?;
            self.words.reserve(self.filled);
            columns::write_rows(&columns, From(from), &mut self.places, &mut self.words);
        }
        Ok(UnsafeRows {
            address: self.words.address(),
            lengths: &self.lengths,
            memory: self.words.capacity() + self.lengths.capacity() * size_of::<i32>(),
        })
    }

    /// Finds out how many words each row of a chunk takes, and gives places to those that fit; false if
    /// there are others.
    fn measure(
        &mut self,
        columns: &mut [Column],
        from: usize,
        count: usize,
        max_words: usize,
    ) -> Result<bool, RowError> {
        let fixed = fixed_words(columns.len());
        self.row_words.clear();
        self.row_words.resize(count, fixed);
        for column in columns {
            column.measure(from..from + count, Holder::Row, &mut self.row_words);
        }
        self.places.clear();
        for (row, words) in (from..).zip(&self.row_words) {
            let (start, end) = (self.filled, self.filled.saturating_add(*words));
            if !self.lengths.is_empty() && end > max_words {
                return Ok(false);
            }
            let bytes = words.saturating_mul(WORD);
            let limit = MAX_ROW_BYTES;
            let length =
                i32::try_from(bytes).map_err(|_| RowError::RowTooLarge { row, bytes, limit })?;
            self.lengths.push(length);
            self.places.push(RowPlace {
                start,
                next: start + fixed,
                end,
                nulls: 0,
            });
            self.filled = end;
        }
        Ok(true)
    }
}
