use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use comet_block::{BlockRows, RowRange};

use crate::Result;
use crate::sizes::shorten;

/// Rows that will share a block. There is always the last row among them, once there is any, so
/// that the last block can be marked as such.
#[derive(Debug)]
pub(crate) struct Pending {
    schema: SchemaRef,
    block_rows: usize,
    block_bytes: usize,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Pending {
    pub(crate) fn new(schema: SchemaRef, block_rows: usize, block_bytes: usize) -> Self {
        Self {
            schema,
            block_rows: block_rows.max(1),
            block_bytes,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
        }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes the block will have.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds as many of the first rows of `rest` as the block has room for, and takes them off. `rest`
    /// is of `batch`, and `rows` is the same batch.
    pub(crate) fn add(&mut self, batch: &RecordBatch, rows: &BlockRows, rest: &mut RowRange) {
        let mut part = *rest;
        part.length = rest.length.min(self.block_rows - self.rows);
        let room = self.block_bytes.saturating_sub(self.bytes);
        let least = usize::from(self.rows == 0).min(part.length);
        shorten(&mut part, rows, room, least);
        if part.length > 0 {
            self.batches.push(batch.slice(part.start, part.length));
            self.rows += part.length;
            self.bytes = self.bytes.saturating_add(rows.bytes(part));
            rest.start += part.length;
            rest.length -= part.length;
        }
    }

    /// What the block is made of, and a fresh start.
    pub(crate) fn take(&mut self) -> Result<(BlockRows, Vec<RowRange>)> {
        self.rows = 0;
        self.bytes = 0;
        let batches = std::mem::take(&mut self.batches);
        let ranges = batches.iter().enumerate().map(|(batch, rows)| RowRange {
            batch,
            start: 0,
            length: rows.num_rows(),
        });
        let ranges = ranges.collect();
        Ok((BlockRows::new(&self.schema, &batches)?, ranges))
    }
}
