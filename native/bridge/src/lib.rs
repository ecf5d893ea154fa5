//! The JNI library of Comet Shuffle: entry points, errors as Java exceptions, and nothing else.
//!
//! [`entry`], [`row_entry`] and [`shuffle_entry`] hold the functions that `org.apache.spark.comet.Native` declares.
//! Each runs in [`error::guarded`], so that errors and panics become Java exceptions and nothing
//! unwinds into the JVM. What they do lives in [`block_decoder`],
//! [`shuffle_writer`] and the crates below, which know no JNI; [`task`] calls up into the JVM.

mod block_decoder;
mod entry;
mod error;
mod handle;
mod partitioning;
mod row_entry;
mod shuffle_entry;
mod shuffle_writer;
mod task;
mod vectors;
