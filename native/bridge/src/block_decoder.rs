//! Blocks to batches.

use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use comet_block::BlockReader;
use comet_row::{SparkSchema, UnsafeRowWriter, UnsafeRows};
use comet_vector::export;

use crate::error::BridgeError;

/// Decodes runs of blocks, and keeps the last batch alive for the JVM to read.
pub(crate) struct BlockDecoder {
    schema: SchemaRef,
    reader: BlockReader,
    decoded: Vec<RecordBatch>,
    current: Option<RecordBatch>,
    nanos: u64,
    rows: UnsafeRowWriter,
}

impl BlockDecoder {
    pub(crate) fn new(descriptor: &[u8]) -> Result<Self, BridgeError> {
        let row_schema = SparkSchema::parse(descriptor)?;
        let schema = row_schema.arrow_schema();
        let reader = BlockReader::new(schema.clone()).map_err(BridgeError::Write)?;
        Ok(Self {
            schema,
            reader,
            decoded: Vec::new(),
            current: None,
            nanos: 0,
            rows: UnsafeRowWriter::new(row_schema),
        })
    }

    /// Decodes all blocks of `run` and joins their rows, in order. The batch before is freed first.
    pub(crate) fn decode(&mut self, run: &[u8]) -> Result<&RecordBatch, BridgeError> {
        let started = Instant::now();
        self.current = None;
        self.decoded.clear();
        let mut rest = run;
        let mut index = 0;
        while !rest.is_empty() {
            let block = self
                .reader
                .read(rest)
                .map_err(|source| BridgeError::Read { index, source })?;
            rest = rest.get(block.length..).unwrap_or_default();
            if block.batch.num_rows() > 0 {
                self.decoded.push(block.batch);
            }
            index += 1;
        }
        let batch = match self.decoded.len() {
            0 => RecordBatch::new_empty(self.schema.clone()),
            1 => self.decoded.swap_remove(0),
            _ => concat_batches(&self.schema, &self.decoded)?,
        };
        self.decoded.clear();
        self.nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(self.current.insert(batch))
    }

    /// Hands a column of the batch on by reference: the address of an exported array.
    pub(crate) fn export(&self, column: usize) -> Result<i64, BridgeError> {
        let batch = self.current.as_ref();
        let column = batch.and_then(|batch| batch.columns().get(column));
        let column = column.ok_or_else(|| BridgeError::Argument("no such column".to_owned()))?;
        Ok(export(&column.to_data())?)
    }

    /// Writes rows of the batch from `first` on: as many as fit into `max_bytes`, at least one. They are
    /// valid until the next call of this or of [`decode`](Self::decode).
    pub(crate) fn write_rows(
        &mut self,
        first: usize,
        max_bytes: usize,
    ) -> Result<UnsafeRows<'_>, BridgeError> {
        let batch = self.current.as_ref();
        let batch = batch.ok_or_else(|| BridgeError::Argument("no batch".to_owned()))?;
        Ok(self.rows.write(batch, first, batch.num_rows(), max_bytes)?)
    }

    /// How long the last decoding took.
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos
    }
}
