//! The codecs, and compression.

use zstd::bulk;

use crate::BlockError;

pub(crate) const NONE: u8 = 0;
pub(crate) const LZ4: u8 = 1;
pub(crate) const ZSTD: u8 = 2;
pub(crate) const SNAPPY: u8 = 3;

/// The longest input that the lz4 and snappy block formats take, in bytes.
const MAX_LZ4_INPUT: usize = 0x7E00_0000;
const MAX_SNAPPY_INPUT: usize = 0xFFFF_FFFF;

/// How the bytes of a block are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// The LZ4 block format.
    Lz4,
    /// One Zstandard frame.
    Zstd {
        /// The compression level, in zstd's own range.
        level: i32,
    },
    /// The raw Snappy format.
    Snappy,
}

impl Codec {
    /// The codec with the id that block headers carry; `zstd_level` is used by zstd only.
    ///
    /// # Errors
    ///
    /// [`BlockError::Unsupported`] if there is no such codec, or zstd has no such level.
    pub fn from_id(id: u8, zstd_level: i32) -> Result<Self, BlockError> {
        let codec = match id {
            NONE => Self::None,
            LZ4 => Self::Lz4,
            ZSTD => Self::Zstd { level: zstd_level },
            SNAPPY => Self::Snappy,
            _ => {
                return Err(BlockError::Unsupported(format!(
                    "codec id {id}, expected 0 to 3"
                )));
            }
        };
        codec.check_level()?;
        Ok(codec)
    }

    /// The id that block headers carry.
    pub fn id(self) -> u8 {
        match self {
            Self::None => NONE,
            Self::Lz4 => LZ4,
            Self::Zstd { .. } => ZSTD,
            Self::Snappy => SNAPPY,
        }
    }

    fn check_level(self) -> Result<(), BlockError> {
        let range = zstd::compression_level_range();
        match self {
            Self::Zstd { level } if !range.contains(&level) => {
                Err(BlockError::Unsupported(format!(
                    "zstd level {level}, expected {} to {}",
                    range.start(),
                    range.end()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The name of a codec id, if there is such a codec.
pub(crate) fn name(id: u8) -> Option<&'static str> {
    match id {
        NONE => Some("none"),
        LZ4 => Some("lz4"),
        ZSTD => Some("zstd"),
        SNAPPY => Some("snappy"),
        _ => None,
    }
}

/// A codec with its context and output buffer, which live as long as the writer.
pub(crate) struct Compressor {
    engine: Engine,
    /// Only ever grows: clearing it for each block would cost as much as a copy.
    output: Vec<u8>,
    context_size: usize,
}

enum Engine {
    None,
    Lz4,
    Zstd(bulk::Compressor<'static>),
    Snappy(Box<snap::raw::Encoder>),
}

impl Compressor {
    pub(crate) fn new(codec: Codec) -> Result<Self, BlockError> {
        codec.check_level()?;
        let engine = match codec {
            Codec::None => Engine::None,
            Codec::Lz4 => Engine::Lz4,
            Codec::Zstd { level } => Engine::Zstd(
                bulk::Compressor::new(level).map_err(|cause| BlockError::codec("zstd", cause))?,
            ),
            Codec::Snappy => Engine::Snappy(Box::new(snap::raw::Encoder::new())),
        };
        let mut compressor = Self {
            engine,
            output: Vec::new(),
            context_size: 0,
        };
        compressor.measure_context();
        Ok(compressor)
    }

    /// The compressed form of `raw`, or nothing if it isn't smaller.
    pub(crate) fn compress(&mut self, raw: &[u8]) -> Result<Option<&[u8]>, BlockError> {
        let bound = match self.engine {
            Engine::None => return Ok(None),
            Engine::Lz4 if raw.len() > MAX_LZ4_INPUT => return Ok(None),
            Engine::Lz4 => lz4::block::compress_bound(raw.len())
                .map_err(|cause| BlockError::codec("lz4", cause))?,
            Engine::Zstd(_) => zstd::compress_bound(raw.len()),
            Engine::Snappy(_) if raw.len() > MAX_SNAPPY_INPUT => return Ok(None),
            Engine::Snappy(_) => match snap::raw::max_compress_len(raw.len()) {
                0 => return Ok(None),
                bound => bound,
            },
        };
        if let Some(missing) = bound.checked_sub(self.output.len()) {
            self.output
                .try_reserve_exact(missing)
                .map_err(|_| BlockError::OutOfMemory { bytes: bound })?;
            self.output.resize(bound, 0);
        }
        let output = self.output.as_mut_slice();
        let length = match &mut self.engine {
            Engine::None => return Ok(None),
            Engine::Lz4 => lz4::block::compress_to_buffer(raw, None, false, output)
                .map_err(|cause| BlockError::codec("lz4", cause))?,
            Engine::Zstd(context) => context
                .compress_to_buffer(raw, output)
                .map_err(|cause| BlockError::codec("zstd", cause))?,
            Engine::Snappy(encoder) => encoder
                .compress(raw, output)
                .map_err(|cause| BlockError::codec("snappy", cause))?,
        };
        self.measure_context();
        if length >= raw.len() {
            return Ok(None);
        }
        Ok(self.output.get(..length))
    }

    /// The bytes of memory that stay allocated between blocks.
    pub(crate) fn memory_size(&self) -> usize {
        self.output.capacity() + self.context_size
    }

    fn measure_context(&mut self) {
        self.context_size = match &mut self.engine {
            Engine::None | Engine::Lz4 => 0,
            Engine::Zstd(context) => context.context_mut().sizeof(),
            // Its two hash tables, the larger one made by the first input that needs it.
            Engine::Snappy(encoder) => size_of_val(encoder.as_ref()) + (1 << 14) * 2,
        };
    }
}
