//! What can go wrong with a block.

use arrow_schema::ArrowError;

/// Why a block could not be written or read.
///
/// [`BlockError::Corrupt`] is the only one that the bytes of a block can cause: whoever fetched
/// them should fetch or compute them again. All others are faults on this side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// The bytes are not a block that a writer of this schema produced: truncated, changed,
    /// foreign, of another schema, or not decodable. The message says what was expected and found.
    #[error("corrupt shuffle block: {0}")]
    Corrupt(String),
    /// The schema, codec or codec level isn't one that blocks can hold.
    #[error("unsupported in shuffle blocks: {0}")]
    Unsupported(String),
    /// A batch given to the writer doesn't fit the writer's schema.
    #[error("batch does not match the block writer's schema: {0}")]
    Schema(String),
    /// A batch is larger than one block can hold.
    #[error("batch too large for one shuffle block: {0}")]
    Limit(String),
    /// The memory for a block could not be allocated.
    #[error("cannot allocate {bytes} bytes for a shuffle block")]
    OutOfMemory {
        /// The size of the failed allocation in bytes.
        bytes: usize,
    },
    /// Arrow failed to encode a batch.
    #[error("cannot encode a shuffle block: {0}")]
    Arrow(#[from] ArrowError),
    /// A codec failed to start or to compress.
    #[error("{codec} failed on a shuffle block: {message}")]
    Codec {
        /// The codec's name.
        codec: &'static str,
        /// The codec's own message.
        message: String,
    },
}

impl BlockError {
    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::Corrupt(message.into())
    }

    pub(crate) fn codec(codec: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Codec {
            codec,
            message: cause.to_string(),
        }
    }
}
