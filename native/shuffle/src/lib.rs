//! The native shuffle writer: columnar batches in, one file of partitioned blocks out.
//!
//! ```text
//!  batches -> Partitioner -> MultiPartitionShuffleRepartitioner -> BufBatchWriter
//!                              stages in sorted groups,               blocks
//!                              joins their runs                         |
//!                                                     SpillWriter  <----+----> LocalPartitionWriter
//!                                                     extents, copied -------> the final file
//! ```
//!
//! Where the JVM collects rows instead, [`RowEncoder`] turns its pages into blocks.
//!
//! A task makes one [`ShuffleWriter`], or runs a [`ShuffleWriterExec`], and gets a
//! [`ShuffleOutput`]. The file has the partitions in order, each a run of blocks (see
//! `comet_block`) of which the last one is marked. What it costs follows the bytes, not the
//! partitions: batches are staged in groups that fit a cache; when a group is full its rows are
//! brought into the order of their partitions, so that later whole runs of rows are copied; small
//! partitions share a pass of gathering; nothing is made for a partition.
//!
//! Nothing here knows Spark or JNI. Memory comes from a DataFusion pool, and whoever needs it back
//! uses a [`SpillHandle`].
//!
//! # Memory
//!
//! A batch is charged with the buffers that it pins, each once and whole, and 12 bytes a row. What
//! it takes to write the rows is charged together with them, since writing is how memory is freed:
//! the buffer in front of files, a block before and after it is compressed, and rows that are
//! gathered. Where little is staged, blocks and buffers are smaller, so that this stays about a
//! fifth of it; where much is staged, it is a buffer and four blocks. Rows into a single partition
//! are charged while they wait for their block; they don't wait if there is no memory for that.
//!
//! Not charged are
//! - up to 256 KiB that each buffer grows ahead, until the next batch comes;
//! - 28 bytes for each partition while it is sorted, written and reported, of which 4 to 20 are
//!   charged with the next batch after the first spill;
//! - the bounds of ranges, one key for each partition;
//! - what Arrow keeps for an array beside its buffers, a few hundred bytes;
//! - what a single row has beyond the size of a block.

mod buf_batch_writer;
mod checksum;
mod counted_file;
mod error;
mod exec;
mod gather;
mod local_writer;
mod metrics;
mod multi;
mod options;
mod order;
mod partition;
mod pending;
mod pinned;
mod row_encoder;
mod scratch;
mod single;
mod sizes;
mod spill;
mod staging;
mod writer;

pub use buf_batch_writer::{BlockSink, BufBatchWriter};
pub use checksum::ChecksumAlgorithm;
pub use error::{Result, ShuffleError};
pub use exec::ShuffleWriterExec;
pub use local_writer::{LocalPartitionWriter, PartitionOutput};
pub use metrics::ShuffleMetrics;
pub use multi::{MultiPartitionShuffleRepartitioner, SpillHandle};
pub use options::{CancelCheck, ShuffleWriterOptions};
pub use partition::{
    HashPartitioner, IdPartitioner, MAX_PARTITIONS, Partitioner, RangePartitioner,
    RoundRobinPartitioner, ShufflePartitioning,
};
pub use row_encoder::{EncodeStats, PartitionBlocks, RowEncoder, SortedRowsOptions};
pub use scratch::ShuffleScratch;
pub use single::{SinglePartitionShuffleWriter, ZeroColumnShuffleWriter};
pub use spill::SpillPath;
pub use writer::{ShuffleOutput, ShuffleWriter};
