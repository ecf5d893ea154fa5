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
//! A task makes one [`ShuffleWriter`], or runs a [`ShuffleWriterExec`], and gets a
//! [`ShuffleOutput`]. The file has the partitions in order, each a run of blocks (see
//! `comet_block`) of which the last one is marked. What it costs follows the bytes, not the
//! partitions: batches are staged in groups that fit a cache; when a group is full its rows are
//! brought into the order of their partitions, so that later whole runs of rows are copied; small
//! partitions share a pass of gathering; nothing is made for a partition.
//!
//! Nothing here knows Spark or JNI. Memory comes from a DataFusion pool, and whoever needs it back
//! uses a [`SpillHandle`].

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
mod pinned;
mod scratch;
mod single;
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
pub use scratch::ShuffleScratch;
pub use single::{SinglePartitionShuffleWriter, ZeroColumnShuffleWriter};
pub use spill::SpillPath;
pub use writer::{ShuffleOutput, ShuffleWriter};
