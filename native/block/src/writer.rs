//! Batches to blocks.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{Schema, SchemaRef};

use crate::codec::{self, Compressor};
use crate::fingerprint::schema_fingerprint;
use crate::{BlockError, BlockHeader, Codec, types};

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
    /// Everything that a payload starts with: the same bytes in every block.
    schema_message: Vec<u8>,
    /// Encodes into the vector that it holds.
    stream: StreamWriter<Vec<u8>>,
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
        let stream = ipc_stream(&schema)?;
        Ok(Self {
            template: BlockHeader {
                codec: codec.id(),
                last: false,
                fingerprint: schema_fingerprint(&schema),
                checksum: 0,
                rows: 0,
                raw_length: 0,
                stored_length: 0,
            },
            schema_message: stream.get_ref().clone(),
            compressor: Compressor::new(codec)?,
            schema,
            codec,
            stream,
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
        self.check_batch(batch)?;
        let start = out.len();
        let result = if self.codec == Codec::None {
            self.write_plain(batch, last, out)
        } else {
            self.write_compressed(batch, last, out)
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
        self.stream.get_ref().capacity()
            + self.schema_message.capacity()
            + self.compressor.memory_size()
    }

    /// Without a codec the payload is encoded where it will stay.
    fn write_plain(
        &mut self,
        batch: &RecordBatch,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        let started = Instant::now();
        let start = out.len();
        out.extend_from_slice(&[0; BlockHeader::LENGTH]);
        out.extend_from_slice(&self.schema_message);
        std::mem::swap(self.stream.get_mut(), out);
        let encoded = self.stream.write(batch);
        std::mem::swap(self.stream.get_mut(), out);
        encoded?;
        let encode_nanos = nanos_since(started);
        let block = out.get_mut(start..).unwrap_or_default();
        let (place, stored) = block
            .split_first_chunk_mut::<{ BlockHeader::LENGTH }>()
            .ok_or_else(|| BlockError::Schema("encoder shortened its output".to_owned()))?;
        let rows = row_count(batch)?;
        let length = checked_length(stored)?;
        let header = BlockHeader {
            last,
            rows,
            raw_length: length,
            stored_length: length,
            ..self.template
        };
        *place = header.to_bytes(stored);
        Ok(BlockStats {
            rows,
            raw_length: length,
            stored_length: length,
            encode_nanos,
            compress_nanos: 0,
        })
    }

    fn write_compressed(
        &mut self,
        batch: &RecordBatch,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<BlockStats, BlockError> {
        let started = Instant::now();
        self.stream.get_mut().truncate(self.schema_message.len());
        self.stream.write(batch)?;
        let encode_nanos = nanos_since(started);
        let raw = self.stream.get_ref().as_slice();
        let rows = row_count(batch)?;
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
            rows,
            raw_length,
            stored_length,
            ..self.template
        };
        out.reserve(BlockHeader::LENGTH + stored.len());
        out.extend_from_slice(&header.to_bytes(stored));
        out.extend_from_slice(stored);
        Ok(BlockStats {
            rows,
            raw_length,
            stored_length,
            encode_nanos,
            compress_nanos,
        })
    }

    /// A batch that the reader would reject must not be written in the first place.
    fn check_batch(&self, batch: &RecordBatch) -> Result<(), BlockError> {
        if Arc::ptr_eq(batch.schema_ref(), &self.schema) {
            return Ok(());
        }
        let fields = self.schema.fields();
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

fn row_count(batch: &RecordBatch) -> Result<u32, BlockError> {
    u32::try_from(batch.num_rows())
        .map_err(|_| BlockError::Limit(format!("{} rows", batch.num_rows())))
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
