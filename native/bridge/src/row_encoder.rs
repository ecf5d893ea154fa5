//! Rows to blocks.

use std::time::Instant;

use comet_block::{BlockWriter, Codec};
use comet_row::{RowError, RowTransposer, SparkSchema, UnsafeRowRef, rows_in_page};

use crate::error::BridgeError;

/// What one call of [`RowEncoder::encode`] did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct EncodeStats {
    pub(crate) encode_nanos: u64,
    pub(crate) compress_nanos: u64,
    /// Bytes that the encoder used: its buffers and the largest batch.
    pub(crate) memory: u64,
    pub(crate) blocks: u64,
}

/// Turns row pages into blocks. Its buffers live as long as the task.
pub(crate) struct RowEncoder {
    transposer: RowTransposer,
    writer: BlockWriter,
    rows: Vec<UnsafeRowRef>,
    blocks: Vec<u8>,
}

impl RowEncoder {
    pub(crate) fn new(descriptor: &[u8], codec: u8, zstd_level: i32) -> Result<Self, BridgeError> {
        let schema = SparkSchema::parse(descriptor)?;
        let codec = Codec::from_id(codec, zstd_level).map_err(BridgeError::Write)?;
        let writer = BlockWriter::new(schema.arrow_schema(), codec).map_err(BridgeError::Write)?;
        Ok(Self {
            transposer: RowTransposer::new(schema)?,
            writer,
            rows: Vec::new(),
            blocks: Vec::new(),
        })
    }

    /// Encodes the rows of `pages` (address and used bytes of each), in order. The blocks are valid
    /// until the next call.
    ///
    /// # Safety
    ///
    /// The pages must stay readable and unchanged during the call.
    pub(crate) unsafe fn encode(
        &mut self,
        pages: &[(*const u8, usize)],
        last: bool,
    ) -> Result<(&mut [u8], EncodeStats), BridgeError> {
        self.blocks.clear();
        self.rows.clear();
        let mut stats = EncodeStats::default();
        for (page, used) in pages {
            // SAFETY: the caller vouches for the pages.
            unsafe { rows_in_page(*page, *used, &mut self.rows) }?;
        }
        let rows = std::mem::take(&mut self.rows);
        let result = if !rows.is_empty() {
            // SAFETY: the rows lie in the pages, which the caller vouches for.
            unsafe { self.encode_rows(&rows, last, &mut stats) }
        } else if last {
            self.writer.write_end(&mut self.blocks);
            stats.blocks += 1;
            Ok(())
        } else {
            Ok(())
        };
        self.rows = rows;
        result?;
        let buffers = self.rows.capacity() * size_of::<UnsafeRowRef>()
            + self.blocks.capacity()
            + self.writer.memory_size();
        stats.memory += buffers as u64;
        Ok((&mut self.blocks, stats))
    }

    /// # Safety
    ///
    /// The rows must be readable.
    unsafe fn encode_rows(
        &mut self,
        rows: &[UnsafeRowRef],
        last: bool,
        stats: &mut EncodeStats,
    ) -> Result<(), BridgeError> {
        let started = Instant::now();
        // SAFETY: the caller vouches for the rows.
        let batch = match unsafe { self.transposer.transpose(rows) } {
            Err(RowError::BatchTooLarge { .. }) if rows.len() > 1 => {
                let (left, right) = rows.split_at(rows.len() / 2);
                // SAFETY: as above.
                unsafe { self.encode_rows(left, false, stats) }?;
                // SAFETY: as above.
                return unsafe { self.encode_rows(right, last, stats) };
            }
            other => other?,
        };
        let transposed = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let block = self
            .writer
            .write(&batch, last, &mut self.blocks)
            .map_err(BridgeError::Write)?;
        stats.encode_nanos += transposed + block.encode_nanos;
        stats.compress_nanos += block.compress_nanos;
        stats.memory = stats.memory.max(batch.get_array_memory_size() as u64);
        stats.blocks += 1;
        Ok(())
    }
}
