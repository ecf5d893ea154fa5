//! Sorted rows, column by column.

use std::ops::Range;
use std::time::Instant;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave;

use crate::metrics::nanos_since;
use crate::order::RowOrder;
use crate::{Result, ShuffleError};

/// Gathers rows in chunks of up to `block_rows` rows. A chunk holds whole partitions where it can,
/// and blocks are slices of it, so that small partitions share the cost of gathering.
pub(crate) struct Gather<'a> {
    schema: SchemaRef,
    order: &'a RowOrder,
    /// The arrays of each column.
    columns: Vec<Vec<&'a dyn Array>>,
    block_rows: usize,
    indices: Vec<(usize, usize)>,
    chunk: RecordBatch,
    chunk_rows: Range<usize>,
    pub(crate) nanos: u64,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(
        schema: SchemaRef,
        batches: &'a [RecordBatch],
        order: &'a RowOrder,
        block_rows: usize,
    ) -> Self {
        let columns = (0..schema.fields().len()).map(|index| {
            let arrays = batches
                .iter()
                .filter_map(|batch| batch.columns().get(index));
            arrays.map(|array| array.as_ref()).collect()
        });
        Self {
            columns: columns.collect(),
            chunk: RecordBatch::new_empty(SchemaRef::clone(&schema)),
            schema,
            order,
            block_rows,
            indices: Vec::new(),
            chunk_rows: 0..0,
            nanos: 0,
        }
    }

    /// The places of the sorted rows of `partition`.
    pub(crate) fn partition(&self, partition: usize) -> Range<usize> {
        match self.order.starts().get(partition..partition + 2) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        }
    }

    /// The first block of the sorted rows `rows` of one partition.
    pub(crate) fn block(&mut self, rows: Range<usize>) -> Result<RecordBatch> {
        let end = rows.end.min(rows.start + self.block_rows);
        if end > self.chunk_rows.end {
            let started = Instant::now();
            self.gather(rows.start, end)?;
            self.nanos += nanos_since(started);
        }
        if rows.start == self.chunk_rows.start && end == self.chunk_rows.end {
            return Ok(self.chunk.clone());
        }
        let offset = rows.start - self.chunk_rows.start;
        Ok(self.chunk.slice(offset, end - rows.start))
    }

    /// Gathers from `start` to at least `end`.
    fn gather(&mut self, start: usize, end: usize) -> Result<()> {
        let most = start + self.block_rows;
        let starts = self.order.starts();
        let partitions = starts.partition_point(|start| *start <= most);
        let whole = starts.get(..partitions).and_then(<[usize]>::last);
        let end = whole.map_or(end, |whole| end.max(*whole));
        let rows = self.order.rows().get(start..end);
        let rows = rows.ok_or(ShuffleError::Internal("no such rows"))?;
        self.indices.clear();
        for row in rows {
            let place = (usize::try_from(row.batch), usize::try_from(row.row));
            let (Ok(batch), Ok(row)) = place else {
                return Err(ShuffleError::Internal("no such row"));
            };
            self.indices.push((batch, row));
        }
        let columns = self.columns.iter();
        let columns = columns.map(|arrays| interleave(arrays, &self.indices));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(end - start));
        let schema = SchemaRef::clone(&self.schema);
        self.chunk = RecordBatch::try_new_with_options(schema, columns, &options)?;
        self.chunk_rows = start..end;
        Ok(())
    }
}
