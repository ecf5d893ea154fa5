//! The JNI library of Comet Shuffle: entry points, errors as Java exceptions, and nothing else.
//!
//! [`entry`] and [`shuffle_entry`] hold the functions that `org.apache.spark.comet.Native` declares.
//! Each runs in [`error::guarded`], so that errors and panics become Java exceptions and nothing
//! unwinds into the JVM. What they do lives in [`row_encoder`], [`block_decoder`] and
//! [`shuffle_writer`], which know no JNI; [`task`] calls up into the JVM.

mod block_decoder;
mod entry;
mod error;
mod handle;
mod partitioning;
mod row_encoder;
mod shuffle_entry;
mod shuffle_writer;
mod task;
mod vectors;
