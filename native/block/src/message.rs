//! The framing of the Arrow IPC stream in a payload.
//!
//! ```text
//!  ffffffff  length  schema message, padded
//!  ffffffff  length  record batch message, padded   body
//! ```
//!
//! Small blocks leave messages out. An end-of-stream mark may follow, which our writer leaves out, too.

use arrow_buffer::Buffer;
use arrow_ipc::{Message, MetadataVersion, RecordBatch, root_as_message};

use crate::BlockError;

/// The only metadata version that payloads have.
pub(crate) const VERSION: MetadataVersion = MetadataVersion::V5;

const CONTINUATION: [u8; 4] = [0xff; 4];
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// The bytes of a message before its flatbuffer.
pub(crate) const PREFIX: usize = 8;

/// The record batch of a payload, cut into its parts.
pub(crate) struct Payload<'a> {
    /// What the arrays are and where their buffers lie.
    pub(crate) batch: RecordBatch<'a>,
    /// The buffers.
    pub(crate) body: Buffer,
}

impl<'a> Payload<'a> {
    /// Splits a stream into the schema message, with its prefix and padding, and the rest.
    pub(crate) fn of_stream(raw: &'a Buffer) -> Result<(&'a [u8], Self), BlockError> {
        let (schema_message, rest) = split_message(raw, "schema")?;
        Ok((schema_message, Self::of_batch(raw, rest)?))
    }

    /// Splits `rest`, the end of `raw`, which starts with the record batch message.
    pub(crate) fn of_batch(raw: &Buffer, rest: &'a [u8]) -> Result<Self, BlockError> {
        let (batch_message, rest) = split_message(rest, "record batch")?;
        let message = header(batch_message)?;
        let body_length = usize::try_from(message.bodyLength())
            .ok()
            .filter(|length| *length <= rest.len())
            .ok_or_else(|| {
                BlockError::corrupt(format!(
                    "record batch body is longer than the {} bytes left",
                    rest.len()
                ))
            })?;
        let end = rest.get(body_length..).unwrap_or_default();
        if !end.is_empty() && end != END_OF_STREAM {
            return Err(BlockError::corrupt(format!(
                "{} unexpected bytes after the record batch",
                end.len()
            )));
        }
        let start = raw.len() - rest.len();
        Ok(Self {
            batch: record_batch(message)?,
            body: raw.slice_with_length(start, body_length),
        })
    }
}

/// Splits off one message with its prefix.
pub(crate) fn split_message<'a>(
    bytes: &'a [u8],
    what: &str,
) -> Result<(&'a [u8], &'a [u8]), BlockError> {
    let truncated = || BlockError::corrupt(format!("{what} message is truncated"));
    let (prefix, rest) = bytes.split_first_chunk::<4>().ok_or_else(truncated)?;
    if *prefix != CONTINUATION {
        return Err(BlockError::corrupt(format!(
            "{what} message: expected a continuation marker, found {prefix:02x?}"
        )));
    }
    let length = rest.first_chunk::<4>().ok_or_else(truncated)?;
    usize::try_from(i32::from_le_bytes(*length))
        .ok()
        .and_then(|length| bytes.split_at_checked(length.checked_add(PREFIX)?))
        .ok_or_else(truncated)
}

/// The verified flatbuffer in a message with its prefix.
pub(crate) fn header(message: &[u8]) -> Result<Message<'_>, BlockError> {
    let message = root_as_message(message.get(PREFIX..).unwrap_or_default())
        .map_err(|cause| BlockError::corrupt(format!("message: {cause}")))?;
    if message.version() != VERSION {
        return Err(BlockError::corrupt(format!(
            "expected metadata version {VERSION:?}, found {:?}",
            message.version()
        )));
    }
    Ok(message)
}

pub(crate) fn record_batch(message: Message<'_>) -> Result<RecordBatch<'_>, BlockError> {
    message.header_as_record_batch().ok_or_else(|| {
        BlockError::corrupt(format!(
            "expected a record batch message, found {:?}",
            message.header_type()
        ))
    })
}
