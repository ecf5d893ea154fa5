//! Rows to the payload of a block.

use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::Schema;

use crate::column::Column;
use crate::ipc_body::{self, BodyNumbers};
use crate::template::{MessageTemplate, Numbers};
use crate::{BlockError, BlockRows, Codec, PayloadKind, RowRange, body, types};

/// The bytes of blocks of fewer rows are not worth being computed beforehand.
const MEASURED_ROWS: usize = 64;
/// How much a buffer grows beyond what is needed at once.
const MAX_SLACK: usize = 256 << 10;
/// A payload of measured rows is a whole stream if its columns take at least this many times the
/// bytes of the schema message. In smaller ones messages would be much of what they cost, and their
/// readers can do without.
const MIN_BODY_PER_SCHEMA: usize = 64;

/// Makes payloads.
pub(crate) struct Encoder {
    /// What streams start with.
    schema_message: Vec<u8>,
    message: MessageTemplate,
    numbers: Numbers,
    alignment: usize,
    /// What small payloads are. A codec makes little of the record batch message, so it stays where
    /// there is one.
    small_kind: PayloadKind,
    body_numbers: BodyNumbers,
}

/// What the header says of a payload.
pub(crate) struct Encoded {
    pub(crate) rows: u32,
    pub(crate) kind: PayloadKind,
}

impl Encoder {
    pub(crate) fn new(schema: &Schema, codec: Codec) -> Result<Self, BlockError> {
        // Without columns a body would be empty, and a payload must not be.
        let small_kind = if codec == Codec::None && !schema.fields().is_empty() {
            PayloadKind::IpcBody
        } else {
            PayloadKind::IpcBatch
        };
        Ok(Self {
            small_kind,
            schema_message: ipc_stream(schema)?.get_ref().clone(),
            message: MessageTemplate::new(schema)?,
            numbers: Numbers::default(),
            alignment: types::alignment(schema),
            body_numbers: BodyNumbers::default(),
        })
    }

    /// Appends the payload of the rows `ranges`.
    pub(crate) fn append(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        out: &mut Vec<u8>,
    ) -> Result<Encoded, BlockError> {
        let lengths = ranges.iter().map(|range| range.length);
        let length = lengths.fold(0, usize::saturating_add);
        let limit = |_| BlockError::Limit(format!("{length} rows"));
        let count = u32::try_from(length).map_err(limit)?;
        let mut small = true;
        if length >= MEASURED_ROWS {
            let bytes = ranges.iter().map(|range| rows.bytes(*range));
            let bytes = bytes.fold(0, usize::saturating_add);
            // What buffers are padded with is less than twice what the message says about them.
            let parts = self.schema_message.len() + 3 * self.message.message().len();
            make_room(out, parts.saturating_add(bytes));
            small = bytes < self.schema_message.len() * MIN_BODY_PER_SCHEMA;
        }
        let kind = if small {
            self.small_kind
        } else {
            PayloadKind::Ipc
        };
        let columns = rows.columns();
        if kind == PayloadKind::IpcBody {
            ipc_body::append(columns, ranges, length, &mut self.body_numbers, out)?;
        } else {
            if kind == PayloadKind::Ipc {
                out.extend_from_slice(&self.schema_message);
            }
            self.append_batch(columns, ranges, length, out)?;
        }
        Ok(Encoded { rows: count, kind })
    }

    /// Appends the record batch message and its body.
    fn append_batch(
        &mut self,
        columns: &[Column],
        ranges: &[RowRange],
        rows: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), BlockError> {
        let start = out.len();
        out.extend_from_slice(self.message.message());
        let end = out.len();
        let numbers = &mut self.numbers;
        numbers.clear();
        let body_length = body::append(columns, ranges, rows, self.alignment, numbers, out)?;
        let message = out.get_mut(start..end).unwrap_or_default();
        let filled = self.message.fill(message, rows, body_length, numbers);
        filled.ok_or_else(|| BlockError::Schema("arrays with other buffers".to_owned()))
    }

    pub(crate) fn memory_size(&self) -> usize {
        let messages = self.schema_message.capacity() + self.message.message().len();
        messages + self.numbers.memory_size() + self.body_numbers.memory_size()
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
pub(crate) fn make_room(out: &mut Vec<u8>, bytes: usize) {
    if out.capacity() - out.len() < bytes {
        out.reserve_exact(bytes.max(out.capacity().min(MAX_SLACK)));
    }
}
