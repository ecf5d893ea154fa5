//! Batches to blocks.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{Schema, SchemaRef};

use crate::body::BodyParts;
use crate::codec::{self, Compressor};
use crate::fingerprint::schema_fingerprint;
use crate::template::{MessageTemplate, Numbers};
use crate::{BlockError, BlockHeader, BlockRows, Codec, RowRange, types};

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

/// The bytes of blocks of fewer rows are not worth being computed beforehand.
const MEASURED_ROWS: usize = 64;
/// How much a buffer grows beyond what is needed at once.
const MAX_SLACK: usize = 256 << 10;
/// A payload of measured rows holds the schema message if its columns take at least this many times
/// its bytes. In smaller ones it would be much of what they cost, and their readers know it.
const MIN_BODY_PER_SCHEMA: usize = 64;

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

/// Makes payloads.
struct Encoder {
    /// What payloads start with that are large enough.
    schema_message: Vec<u8>,
    message: MessageTemplate,
    alignment: usize,
    parts: BodyParts,
}

/// What the header says of a payload.
struct Encoded {
    rows: u32,
    no_schema: bool,
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
                no_schema: false,
                fingerprint: schema_fingerprint(&schema),
                checksum: 0,
                rows: 0,
                raw_length: 0,
                stored_length: 0,
            },
            encoder: Encoder::new(&schema)?,
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
            no_schema: encoded.no_schema,
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
            no_schema: encoded.no_schema,
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

impl Encoder {
    fn new(schema: &Schema) -> Result<Self, BlockError> {
        Ok(Self {
            schema_message: ipc_stream(schema)?.get_ref().clone(),
            message: MessageTemplate::new(schema)?,
            alignment: types::alignment(schema),
            parts: BodyParts::default(),
        })
    }

    /// Appends the payload of the rows `ranges`.
    fn append(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        out: &mut Vec<u8>,
    ) -> Result<Encoded, BlockError> {
        let lengths = ranges.iter().map(|range| range.length);
        let length = lengths.fold(0, usize::saturating_add);
        let limit = |_| BlockError::Limit(format!("{length} rows"));
        let count = u32::try_from(length).map_err(limit)?;
        let mut no_schema = true;
        if length >= MEASURED_ROWS {
            let bytes = ranges.iter().map(|range| rows.bytes(*range));
            let bytes = bytes.fold(0, usize::saturating_add);
            // What buffers are padded with is less than twice what the message says about them.
            let parts = self.schema_message.len() + 3 * self.message.message().len();
            make_room(out, parts.saturating_add(bytes));
            no_schema = bytes < self.schema_message.len() * MIN_BODY_PER_SCHEMA;
        }
        if !no_schema {
            out.extend_from_slice(&self.schema_message);
        }
        let start = out.len();
        out.extend_from_slice(self.message.message());
        let end = out.len();
        let parts = &mut self.parts;
        let body_length = parts.append(rows.columns(), ranges, length, self.alignment, out)?;
        let numbers = Numbers {
            rows: length,
            body_length,
            nodes: &parts.nodes,
            buffers: &parts.buffers,
        };
        let message = out.get_mut(start..end).unwrap_or_default();
        let filled = self.message.fill(message, &numbers);
        filled.ok_or_else(|| BlockError::Schema("arrays with other buffers".to_owned()))?;
        Ok(Encoded {
            rows: count,
            no_schema,
        })
    }

    fn memory_size(&self) -> usize {
        self.schema_message.capacity() + self.message.message().len() + self.parts.memory_size()
    }
}

/// An IPC stream whose output so far is the schema message.
pub(crate) fn ipc_stream(schema: &Schema) -> Result<StreamWriter<Vec<u8>>, BlockError> {
    let options = IpcWriteOptions::try_new(types::alignment(schema), false, MetadataVersion::V5)?;
    Ok(StreamWriter::try_new_with_options(
        Vec::new(),
        schema,
        options,
    )?)
}

/// Makes room for `bytes` more. Doubling, as vectors do, would hold much memory for nothing where
/// blocks are large.
fn make_room(out: &mut Vec<u8>, bytes: usize) {
    if out.capacity() - out.len() < bytes {
        out.reserve_exact(bytes.max(out.capacity().min(MAX_SLACK)));
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
