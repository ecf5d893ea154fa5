use arrow_schema::SchemaRef;
use comet_block::{BlockWriter, Codec};

use crate::{Result, ShuffleMetrics};

/// What all writers of a task share: bytes on their way to a file, and the block writer with its
/// codec context and IPC scratch. Nothing of it is made for a partition or a block.
pub struct ShuffleScratch {
    pub(crate) metrics: ShuffleMetrics,
    pub(crate) buffer: Vec<u8>,
    pub(crate) blocks: BlockWriter,
}

impl ShuffleScratch {
    /// The scratch of a task that writes batches of `schema`.
    ///
    /// # Errors
    ///
    /// [`crate::ShuffleError::Block`] if blocks cannot hold the schema or the codec cannot be set
    /// up.
    pub fn new(schema: SchemaRef, codec: Codec) -> Result<Self> {
        Ok(Self {
            metrics: ShuffleMetrics::default(),
            buffer: Vec::new(),
            blocks: BlockWriter::new(schema, codec)?,
        })
    }

    /// Makes room for `bytes` of blocks.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.buffer.len());
        self.buffer.reserve_exact(missing);
    }

    /// What was done with it so far.
    pub fn metrics(&self) -> &ShuffleMetrics {
        &self.metrics
    }

    /// The bytes of memory that it holds.
    pub fn memory_size(&self) -> usize {
        self.buffer.capacity() + self.blocks.memory_size()
    }
}
