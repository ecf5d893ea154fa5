use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use comet_block::Codec;
use comet_memory::DEFAULT_STEP;

use crate::spill::SpillPath;
use crate::{ChecksumAlgorithm, Result, ShuffleError};

/// Whether the task was killed. Asked at least once for every block.
pub type CancelCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// More than this gains no compression, and costs memory: a block is held as it is, encoded and
/// compressed.
const DEFAULT_MAX_BLOCK_BYTES: usize = 4 << 20;

/// How a shuffle is written.
#[derive(Clone)]
pub struct ShuffleWriterOptions {
    /// The final data file, which is created.
    pub data_path: PathBuf,
    /// Where to spill.
    pub spill_path: SpillPath,
    /// How blocks are compressed.
    pub codec: Codec,
    /// The most rows of a block.
    pub block_rows: usize,
    /// About the most bytes of a block before compression, however wide its rows are.
    pub max_block_bytes: usize,
    /// The size of writes to files in bytes.
    pub write_buffer_size: usize,
    /// Spill when this many bytes are staged; without a limit memory pressure alone decides.
    pub max_buffer_bytes: Option<usize>,
    /// The step of memory reservations in bytes.
    pub reservation_step: usize,
    /// The checksums of partitions.
    pub checksum: ChecksumAlgorithm,
    /// Whether the task was killed.
    pub is_cancelled: CancelCheck,
}

impl ShuffleWriterOptions {
    /// The defaults, with spills beside the data file.
    pub fn new(data_path: PathBuf, codec: Codec) -> Self {
        let spill = data_path.with_extension("spill");
        Self {
            data_path,
            spill_path: Arc::new(move || Ok(spill.clone())),
            codec,
            block_rows: 8192,
            max_block_bytes: DEFAULT_MAX_BLOCK_BYTES,
            write_buffer_size: 1 << 20,
            max_buffer_bytes: None,
            reservation_step: DEFAULT_STEP,
            checksum: ChecksumAlgorithm::None,
            is_cancelled: Arc::new(|| false),
        }
    }

    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if (self.is_cancelled)() {
            return Err(ShuffleError::Cancelled);
        }
        Ok(())
    }
}

impl fmt::Debug for ShuffleWriterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShuffleWriterOptions")
            .field("data_path", &self.data_path)
            .field("codec", &self.codec)
            .field("block_rows", &self.block_rows)
            .field("max_block_bytes", &self.max_block_bytes)
            .field("write_buffer_size", &self.write_buffer_size)
            .field("max_buffer_bytes", &self.max_buffer_bytes)
            .field("reservation_step", &self.reservation_step)
            .field("checksum", &self.checksum)
            .finish_non_exhaustive()
    }
}
