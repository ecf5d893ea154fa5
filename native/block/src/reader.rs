//! Blocks to batches.

use std::collections::HashMap;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_schema::SchemaRef;

use crate::decompress::Decompressor;
use crate::encoder::ipc_stream;
use crate::fingerprint::schema_fingerprint;
use crate::ipc_body::IpcBodyReader;
use crate::message::{self, Payload};
use crate::{BlockError, BlockHeader, PayloadKind, layout, schema_match, types};

/// One block, decoded.
#[derive(Debug, Clone)]
pub struct DecodedBlock {
    /// The rows, with the reader's schema. All arrays start at offset 0 of their buffers and share
    /// one allocation, but for wide decimals of small blocks, which may have to be moved.
    pub batch: RecordBatch,
    /// The length of the whole block in bytes: where the next one starts.
    pub length: usize,
    /// Whether it is the last block that its map task wrote for the partition.
    pub last: bool,
}

/// Reads blocks of one schema. Codec contexts live as long as the reader.
pub struct BlockReader {
    schema: SchemaRef,
    fingerprint: u32,
    decompressor: Decompressor,
    body_reader: IpcBodyReader,
    /// The schema message that was last found to match: comparing bytes is all that most blocks
    /// need.
    schema_message: Vec<u8>,
    /// Blocks have no dictionaries, but the decoder wants to be told so.
    dictionaries: HashMap<i64, ArrayRef>,
}

impl BlockReader {
    /// A reader of blocks that were written with `schema`, in any codec.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] if blocks cannot hold one of the types.
    pub fn new(schema: SchemaRef) -> Result<Self, BlockError> {
        types::check_supported(&schema)?;
        Ok(Self {
            fingerprint: schema_fingerprint(&schema),
            schema_message: ipc_stream(&schema)?.get_ref().clone(),
            decompressor: Decompressor::new(),
            body_reader: IpcBodyReader::new(&schema)?,
            dictionaries: HashMap::new(),
            schema,
        })
    }

    /// Verifies and decodes the block at the start of `bytes`; more blocks may follow it.
    ///
    /// Nothing is decoded before the checksum is verified, and nothing is allocated that the
    /// length of the block doesn't justify.
    ///
    /// # Errors
    ///
    /// [`BlockError::Corrupt`] for whatever is wrong with the bytes, [`BlockError::OutOfMemory`] if
    /// there is no memory for the decompressed block.
    pub fn read(&mut self, bytes: &[u8]) -> Result<DecodedBlock, BlockError> {
        let header = BlockHeader::parse(bytes)?;
        let stored = header.stored(bytes)?;
        header.verify_checksum(bytes)?;
        if header.fingerprint() != self.fingerprint {
            return Err(BlockError::corrupt(format!(
                "expected schema fingerprint {:08x}, found {:08x}",
                self.fingerprint,
                header.fingerprint()
            )));
        }
        let batch = if header.raw_length() == 0 {
            RecordBatch::new_empty(self.schema.clone())
        } else {
            self.decode(&header, stored)?
        };
        Ok(DecodedBlock {
            batch,
            length: BlockHeader::LENGTH + stored.len(),
            last: header.is_last(),
        })
    }

    fn decode(&mut self, header: &BlockHeader, stored: &[u8]) -> Result<RecordBatch, BlockError> {
        let raw = self
            .decompressor
            .decompress(header.codec_id(), stored, header.raw_length())?;
        let payload = match header.kind() {
            PayloadKind::Ipc => {
                let (found, payload) = Payload::of_stream(&raw)?;
                if found != self.schema_message {
                    schema_match::check(message::header(found)?, &self.schema)?;
                    self.schema_message.clear();
                    self.schema_message.extend_from_slice(found);
                }
                payload
            }
            PayloadKind::IpcBatch => Payload::of_batch(&raw, &raw)?,
            PayloadKind::IpcBody => self.body_reader.payload(&raw, header.rows())?,
        };
        let batch = payload.batch;
        let rows = i64::from(header.rows());
        if batch.length() != rows {
            return Err(BlockError::corrupt(format!(
                "expected {rows} rows, the record batch has {}",
                batch.length()
            )));
        }
        layout::check(&batch, &self.schema, payload.body.len())?;
        if self.schema.fields().is_empty() {
            return self.without_columns(header);
        }
        RecordBatchDecoder::try_new(
            &payload.body,
            batch,
            self.schema.clone(),
            &self.dictionaries,
            &message::VERSION,
        )
        .and_then(RecordBatchDecoder::read_record_batch)
        .map_err(|cause| BlockError::corrupt(format!("record batch: {cause}")))
    }

    fn without_columns(&self, header: &BlockHeader) -> Result<RecordBatch, BlockError> {
        let rows = usize::try_from(header.rows())
            .map_err(|_| BlockError::corrupt("more rows than memory has addresses"))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            self.schema.clone(),
            Vec::new(),
            &options,
        )?)
    }
}
