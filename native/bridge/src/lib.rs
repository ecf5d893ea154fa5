//! The JNI library of Comet Shuffle: entry points, errors as Java exceptions, and nothing else.
//!
//! [`entry`] holds the functions that `org.apache.spark.comet.Native` declares. Each runs in
//! [`error::guarded`], so that errors and panics become Java exceptions and nothing unwinds into
//! the JVM. What they do lives in [`row_encoder`] and [`block_decoder`], which know no JNI.

mod block_decoder;
mod entry;
mod error;
mod handle;
mod row_encoder;
mod vectors;
