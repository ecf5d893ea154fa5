use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use comet_block::BlockError;
use comet_memory::MemoryError;
use comet_row::RowError;
use datafusion_common::DataFusionError;

/// Why a shuffle could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShuffleError {
    /// A file could not be written or read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes that were counted are not the bytes in the file.
    #[error("{path}: wrote {expected} bytes but the file's position is {actual}", path = path.display())]
    Position {
        /// The file.
        path: PathBuf,
        /// The running total in bytes.
        expected: u64,
        /// The file's position in bytes.
        actual: u64,
    },
    /// A block could not be made.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Rows could not be turned into a batch.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Arrow could not gather or sort rows.
    #[error("cannot gather shuffle rows: {0}")]
    Arrow(#[from] ArrowError),
    /// There is no memory left and nothing to spill, or the accounting broke.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A key or the input could not be evaluated.
    #[error(transparent)]
    DataFusion(#[from] DataFusionError),
    /// The partitioning cannot be computed here.
    #[error("unsupported shuffle: {0}")]
    Unsupported(String),
    /// The task was killed.
    #[error("the task was killed")]
    Cancelled,
    /// An earlier failure, seen again by a later call.
    #[error("the shuffle writer failed earlier: {0}")]
    Failed(String),
    /// Something that cannot happen did.
    #[error("shuffle writer: {0}")]
    Internal(&'static str),
}

impl ShuffleError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl From<ShuffleError> for DataFusionError {
    fn from(error: ShuffleError) -> Self {
        match error {
            ShuffleError::DataFusion(error) => error,
            other => Self::External(Box::new(other)),
        }
    }
}

/// What most functions here return.
pub type Result<T, E = ShuffleError> = std::result::Result<T, E>;
