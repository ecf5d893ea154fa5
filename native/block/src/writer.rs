//! Batches to blocks.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::codec::{self, Compressor};
use crate::encoder::{Encoder, make_room};
use crate::fingerprint::schema_fingerprint;
use crate::{BlockError, BlockHeader, BlockRows, Codec, PayloadKind, RowRange, types};

/// What one block holds and what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockStats {
    /// The number of rows.
    pub rows: u32,
    /// The length of the payload before compression in bytes.
    pub raw_length: u64,
    /// The length of the payload in the block in bytes, without the header.
    pub stored_length: u64,
    /// The nanoseconds it took to make the raw payload.
    pub encode_nanos: u64,
    /// The nanoseconds it took to compress it; 0 without a codec.
    pub compress_nanos: u64,
}

/// Writes batches of one schema as blocks. Scratch memory and codec contexts live as long as the
/// writer, so one writer should serve all partitions of a task.
pub struct BlockWriter {
    schema: SchemaRef,
    codec: Codec,
    /// What all headers have in common.
    template: BlockHeader,
    encoder: Encoder,
    /// The payload that is to be compressed.
    raw: Vec<u8>,
    compressor: Compressor,
}

impl BlockWriter {
    /// A writer of blocks of `schema`, compressed with `codec`.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] if blocks cannot hold one of the types or zstd has no such
    /// level, [`BlockError::Codec`] if the codec cannot be set up.
    pub fn new(schema: SchemaRef, codec: Codec) -> Result<Self, BlockError> {
        types::check_supported(&schema)?;
        Ok(Self {
            template: BlockHeader {
                codec: codec.id(),
                last: false,
                kind: PayloadKind::Ipc,
                fingerprint: schema_fingerprint(&schema),
                checksum: 0,
                rows: 0,
                raw_length: 0,
                stored_length: 0,
            },
            encoder: Encoder::new(&schema, codec)?,
            raw: Vec::new(),
            compressor: Compressor::new(codec)?,
            schema,
            codec,
        })
    }

    /// Appends `batch` to `out` as one block, also if it has no rows. `last` marks it as the last
    /// block that this map task writes for the partition.
    ///
    /// # Errors
    ///
    /// [`BlockError::Schema`] if the batch has other types than the writer's schema,
    /// [`BlockError::Limit`] if it is too large for a block, or an encoding or codec failure. `out`
    /// is then as it was.
    pub fn write(
        &mut self,
        batch: &RecordBatch,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        let rows = BlockRows::new(&self.schema, std::slice::from_ref(batch))?;
        let all = RowRange {
            batch: 0,
            start: 0,
            length: batch.num_rows(),
        };
        self.write_rows(&rows, &[all], last, out)
    }

    /// Appends the rows `ranges`, one range after the other, as one block, as
    /// [`BlockWriter::write`] does.
    ///
    /// # Errors
    ///
    /// [`BlockError::Schema`] if there are no such rows or they are of another schema object,
    /// [`BlockError::Limit`] if they are too many for a block, or a codec failure. `out` is then as
    /// it was.
    pub fn write_rows(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        if !Arc::ptr_eq(rows.schema(), &self.schema) {
            return Err(BlockError::Schema("rows of another schema".to_owned()));
        }
        if !rows.contain(ranges) {
            return Err(BlockError::Schema("no such rows".to_owned()));
        }
        let start = out.len();
        let result = if self.codec == Codec::None {
            self.write_plain(rows, ranges, last, out)
        } else {
            self.write_compressed(rows, ranges, last, out)
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends a block without rows that is marked as the last one: what a map task writes when it
    /// learns only after its last batch that it was the last.
    pub fn write_end(&mut self, out: &mut Vec<u8>) {
        let header = BlockHeader {
            codec: codec::NONE,
            last: true,
            ..self.template
        };
        out.extend_from_slice(&header.to_bytes(&[]));
    }

    /// The bytes of scratch memory that the writer keeps between blocks.
    pub fn memory_size(&self) -> usize {
        self.encoder.memory_size() + self.raw.capacity() + self.compressor.memory_size()
    }

    /// Without a codec the payload is encoded where it will stay.
    fn write_plain(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        let started = Instant::now();
        let start = out.len();
        out.extend_from_slice(&[0; BlockHeader::LENGTH]);
        let encoded = self.encoder.append(rows, ranges, out)?;
        let encode_nanos = nanos_since(started);
        let block = out.get_mut(start..).unwrap_or_default();
        let (place, stored) = block
            .split_first_chunk_mut::<{ BlockHeader::LENGTH }>()
            .ok_or_else(|| BlockError::Schema("encoder shortened its output".to_owned()))?;
        let length = checked_length(stored)?;
        let header = BlockHeader {
            last,
            rows: encoded.rows,
            kind: encoded.kind,
            raw_length: length,
            stored_length: length,
            ..self.template
        };
        *place = header.to_bytes(stored);
        Ok(BlockStats {
            rows: encoded.rows,
            raw_length: length,
            stored_length: length,
            encode_nanos,
            compress_nanos: 0,
        })
    }

    fn write_compressed(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        let started = Instant::now();
        self.raw.clear();
        let encoded = self.encoder.append(rows, ranges, &mut self.raw)?;
        let encode_nanos = nanos_since(started);
        let raw = self.raw.as_slice();
        let raw_length = checked_length(raw)?;
        let started = Instant::now();
        let compressed = self.compressor.compress(raw)?;
        let compress_nanos = nanos_since(started);
        let (codec, stored) = match compressed {
            Some(compressed) => (self.codec.id(), compressed),
            None => (codec::NONE, raw),
        };
        let stored_length = checked_length(stored)?;
        let header = BlockHeader {
            codec,
            last,
            rows: encoded.rows,
            kind: encoded.kind,
            raw_length,
            stored_length,
            ..self.template
        };
        make_room(out, BlockHeader::LENGTH + stored.len());
        out.extend_from_slice(&header.to_bytes(stored));
        out.extend_from_slice(stored);
        Ok(BlockStats {
            rows: encoded.rows,
            raw_length,
            stored_length,
            encode_nanos,
            compress_nanos,
        })
    }
}

fn checked_length(bytes: &[u8]) -> Result<u64, BlockError> {
    u64::try_from(bytes.len())
        .ok()
        .filter(|length| *length <= BlockHeader::MAX_LENGTH)
        .ok_or_else(|| BlockError::Limit(format!("{} bytes", bytes.len())))
}

fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
