//! The columns of a row, whether it is a whole row or a struct.

use arrow_array::ArrayRef;
use arrow_schema::Fields;

use super::{Column, Shared};
use crate::bits::transpose_bits;
use crate::error::RowError;
use crate::row::Span;
use crate::schema::{SparkField, arrow_fields};
use crate::source::{RowField, RowNulls};

/// Rows that are read by all columns before the next ones, so that they are still in the CPU's
/// cache for the last column. A multiple of 64, so that bitmaps grow by whole words.
const CHUNK: usize = 256;

/// The columns of rows with one schema.
#[derive(Debug)]
pub(crate) struct RowColumns {
    fields: Fields,
    columns: Vec<Column>,
    /// The null bits of a chunk, in squares of 64 rows by 64 columns: those of the first 64
    /// columns, then those of the next.
    squares: Vec<[u64; 64]>,
    /// For each 64 columns, those with a null in the chunk.
    any_null: Vec<u64>,
}

impl RowColumns {
    pub(crate) fn new(fields: &[SparkField]) -> Self {
        Self {
            fields: arrow_fields(fields),
            columns: fields
                .iter()
                .map(|field| Column::new(&field.data_type))
                .collect(),
            squares: Vec::new(),
            any_null: vec![0; fields.len().div_ceil(64)],
        }
    }

    /// The Arrow fields of the columns.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(crate) fn begin(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.begin(rows);
        }
    }

    /// Appends rows to all columns.
    ///
    /// # Safety
    ///
    /// The rows must be readable.
    pub(crate) unsafe fn append(
        &mut self,
        rows: &[Span],
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        let width = self.columns.len();
        for rows in rows.chunks(CHUNK) {
            // SAFETY: the caller vouches for the rows.
            unsafe { self.scan(rows) }?;
            let squares = rows.len().div_ceil(64);
            for (index, column) in self.columns.iter_mut().enumerate() {
                let word = index / 64;
                let any_null = self
                    .any_null
                    .get(word)
                    .is_some_and(|w| w >> (index % 64) & 1 == 1);
                let nulls = any_null
                    .then(|| self.squares.get(word * squares..(word + 1) * squares))
                    .flatten()
                    .map(|squares| RowNulls {
                        squares,
                        column: index % 64,
                    });
                // SAFETY: `scan` found each row to hold `width` fields, and index < width.
                let field = unsafe { RowField::new(rows, index, width, nulls) };
                if let Err(error) = column.append(field, shared) {
                    return Err(error.within(self.fields.get(index).map_or("", |f| f.name())));
                }
            }
        }
        Ok(())
    }

    /// Checks that the fixed part of each row is there, and gathers the null bits.
    ///
    /// # Safety
    ///
    /// The rows must be readable.
    unsafe fn scan(&mut self, rows: &[Span]) -> Result<(), RowError> {
        let needed = (self.any_null.len() + self.columns.len()) * 8;
        if let Some(row) = rows.iter().find(|row| row.len < needed) {
            let (len, fields) = (row.len, self.columns.len());
            return Err(RowError::malformed(format!(
                "{len} bytes are too few for {fields} fields, which take {needed}"
            )));
        }
        self.squares.clear();
        for (index, any_null) in self.any_null.iter_mut().enumerate() {
            *any_null = 0;
            for rows in rows.chunks(64) {
                let mut square = [0; 64];
                let mut seen = 0;
                for (word, row) in square.iter_mut().zip(rows) {
                    // SAFETY: each row was found to hold all its null words.
                    *word = unsafe { row.read::<u64>(index * 8) };
                    seen |= *word;
                }
                if seen != 0 {
                    transpose_bits(&mut square);
                }
                self.squares.push(square);
                *any_null |= seen;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>, RowError> {
        self.columns.iter_mut().map(Column::finish).collect()
    }
}
