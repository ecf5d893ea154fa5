//! Decompression into aligned memory, never more of it than the stored bytes can justify.

use arrow_buffer::Buffer;
use zstd::{bulk, zstd_safe};

use crate::BlockError;
use crate::codec::{LZ4, NONE, SNAPPY, ZSTD};

/// Arrow's recommended alignment. Buffers inside of a payload are aligned relative to its start.
const ALIGNMENT: usize = 64;

/// Codec contexts, which live as long as the reader.
pub(crate) struct Decompressor {
    zstd: Option<bulk::Decompressor<'static>>,
    snappy: snap::raw::Decoder,
}

impl Decompressor {
    pub(crate) fn new() -> Self {
        Self {
            zstd: None,
            snappy: snap::raw::Decoder::new(),
        }
    }

    /// Decompresses `stored` to exactly `raw_length` bytes.
    pub(crate) fn decompress(
        &mut self,
        codec: u8,
        stored: &[u8],
        raw_length: u64,
    ) -> Result<Buffer, BlockError> {
        check_justified(codec, stored, raw_length)?;
        let length = usize::try_from(raw_length)
            .map_err(|_| BlockError::corrupt(format!("raw length {raw_length} is too large")))?;
        if codec == NONE {
            let mut memory = AlignedMemory::reserve(length)?;
            memory.bytes.extend_from_slice(stored);
            return memory.into_buffer(length);
        }
        let mut memory = AlignedMemory::zeroed(length)?;
        let found = self.decompress_to(codec, stored, memory.as_mut_slice())?;
        if found != length {
            return Err(BlockError::corrupt(format!(
                "expected {length} raw bytes, decompressed {found}"
            )));
        }
        memory.into_buffer(length)
    }

    fn decompress_to(
        &mut self,
        codec: u8,
        stored: &[u8],
        output: &mut [u8],
    ) -> Result<usize, BlockError> {
        match codec {
            LZ4 => {
                let length = i32::try_from(output.len())
                    .map_err(|_| BlockError::corrupt("raw length too large for lz4"))?;
                lz4::block::decompress_to_buffer(stored, Some(length), output)
                    .map_err(|cause| BlockError::corrupt(format!("lz4: {cause}")))
            }
            ZSTD => {
                let context = match &mut self.zstd {
                    Some(context) => context,
                    empty => empty.insert(
                        bulk::Decompressor::new()
                            .map_err(|cause| BlockError::codec("zstd", cause))?,
                    ),
                };
                context
                    .decompress_to_buffer(stored, output)
                    .map_err(|cause| BlockError::corrupt(format!("zstd: {cause}")))
            }
            SNAPPY => self
                .snappy
                .decompress(stored, output)
                .map_err(|cause| BlockError::corrupt(format!("snappy: {cause}"))),
            _ => Err(BlockError::corrupt(format!("unknown codec {codec}"))),
        }
    }
}

/// Checks that `stored` can really decompress to `raw_length` bytes, before they are allocated.
fn check_justified(codec: u8, stored: &[u8], raw_length: u64) -> Result<(), BlockError> {
    let stored_length = u64::try_from(stored.len()).unwrap_or(u64::MAX);
    let most = match codec {
        NONE => stored_length,
        // A length byte of 255 adds as many bytes to a literal or match.
        LZ4 => stored_length.saturating_mul(255).saturating_add(64),
        // A zstd block is at least 3 bytes of header and at most 128 KiB of output.
        ZSTD => (stored_length / 3).saturating_mul(1 << 17),
        // A copy of 3 bytes makes at most 64.
        _ => stored_length.saturating_mul(64),
    };
    if raw_length > most {
        return Err(BlockError::corrupt(format!(
            "raw length {raw_length} is more than {stored_length} stored bytes can hold"
        )));
    }
    let declared = match codec {
        ZSTD => {
            let frame = zstd_safe::find_frame_compressed_size(stored).map_err(|code| {
                let cause = zstd_safe::get_error_name(code);
                BlockError::corrupt(format!("zstd: {cause}"))
            })?;
            if frame != stored.len() {
                return Err(BlockError::corrupt(format!(
                    "expected one zstd frame of {stored_length} bytes, found one of {frame}"
                )));
            }
            zstd_safe::get_frame_content_size(stored)
                .ok()
                .flatten()
                .ok_or_else(|| BlockError::corrupt("zstd frame without content size"))?
        }
        SNAPPY => {
            let length = snap::raw::decompress_len(stored)
                .map_err(|cause| BlockError::corrupt(format!("snappy: {cause}")))?;
            u64::try_from(length).unwrap_or(u64::MAX)
        }
        _ => raw_length,
    };
    if declared != raw_length {
        return Err(BlockError::corrupt(format!(
            "expected {raw_length} raw bytes, the compressed data holds {declared}"
        )));
    }
    Ok(())
}

/// A vector whose bytes from `start` on are aligned; a vector can be allocated fallibly.
struct AlignedMemory {
    bytes: Vec<u8>,
    start: usize,
}

impl AlignedMemory {
    /// Room for `length` bytes, to be appended.
    fn reserve(length: usize) -> Result<Self, BlockError> {
        let bytes = length.saturating_add(ALIGNMENT);
        let mut memory = Vec::<u8>::new();
        memory
            .try_reserve_exact(bytes)
            .map_err(|_| BlockError::OutOfMemory { bytes })?;
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        memory.resize(start, 0);
        Ok(Self {
            bytes: memory,
            start,
        })
    }

    fn zeroed(length: usize) -> Result<Self, BlockError> {
        let mut memory = Self::reserve(length)?;
        memory.bytes.resize(memory.start + length, 0);
        Ok(memory)
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    fn into_buffer(self, length: usize) -> Result<Buffer, BlockError> {
        if self.bytes.len() != self.start + length {
            return Err(BlockError::corrupt("payload of another length"));
        }
        Ok(Buffer::from_vec(self.bytes).slice_with_length(self.start, length))
    }
}
