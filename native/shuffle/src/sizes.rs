//! How large blocks and buffers are, and what it takes to write them.

use comet_block::{BlockRows, Codec, RowRange};

use crate::ShuffleWriterOptions;

/// What writing takes should be small beside what is written. These are fractions of that, and what
/// is worth a block or a write in any case.
const BLOCK_FRACTION: usize = 32;
const MIN_BLOCK: usize = 16 << 10;
const BUFFER_FRACTION: usize = 8;
const MIN_BUFFER: usize = 64 << 10;

/// The sizes for writing so many bytes of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// About the most bytes of a block before compression.
    pub(crate) block: usize,
    /// The bytes that are collected for a write.
    pub(crate) buffer: usize,
    compressed: bool,
}

impl Sizes {
    pub(crate) fn new(options: &ShuffleWriterOptions, bytes: usize) -> Self {
        let (block, buffer) = (bytes / BLOCK_FRACTION, bytes / BUFFER_FRACTION);
        Self {
            block: block.max(MIN_BLOCK).min(options.max_block_bytes),
            buffer: buffer.max(MIN_BUFFER).min(options.write_buffer_size),
            compressed: options.codec != Codec::None,
        }
    }

    /// The sizes for writing rows of so many bytes as one block, or as blocks that are full.
    pub(crate) fn of_block(options: &ShuffleWriterOptions, bytes: usize) -> Self {
        Self {
            block: bytes.min(options.max_block_bytes),
            buffer: options.write_buffer_size,
            compressed: options.codec != Codec::None,
        }
    }

    /// The most bytes of memory that writing takes for buffers and blocks, gathered rows excluded:
    /// a full buffer with another block, and the block before and after it is compressed.
    pub(crate) fn scratch(&self) -> usize {
        let blocks = if self.compressed { 3 } else { 1 };
        self.buffer.saturating_add(blocks * self.block)
    }
}

/// Shortens `part` until it has at most `bytes`, but not below `least` rows.
pub(crate) fn shorten(part: &mut RowRange, rows: &BlockRows, bytes: usize, least: usize) {
    while part.length > least && rows.bytes(*part) > bytes {
        part.length = (part.length / 2).max(least);
    }
}
