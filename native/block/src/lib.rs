//! The shuffle block: a self-delimited run of rows, as it lies in shuffle files and crosses the
//! network.
//!
//! ```text
//!  +--------------------+----------------------------+   +--------------------+-----
//!  | header (40 bytes)  | stored bytes (compressed)  |   | header (40 bytes)  | ...
//!  +--------------------+----------------------------+   +--------------------+-----
//!   lengths, codec, rows,  one Arrow IPC stream: a
//!   fingerprint, checksum  schema and a record batch
//!                          (small blocks: its body)
//! ```
//!
//! A partition is a run of such blocks, and partitions concatenate. `docs/block-format.md` draws
//! the format byte by byte. [`BlockWriter`] appends blocks to a byte vector, [`BlockReader`]
//! verifies and decodes them; both keep their scratch memory and codec contexts between blocks, so
//! that a task should own one of each and use it for all its partitions.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int64Array, RecordBatch};
//! use arrow_schema::{DataType, Field, Schema};
//! use comet_block::{BlockReader, BlockWriter, Codec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
//! let batch = RecordBatch::try_new(
//!     Arc::clone(&schema),
//!     vec![Arc::new(Int64Array::from(vec![1, 2, 3]))],
//! )?;
//! let mut partition = Vec::new();
//! let mut writer = BlockWriter::new(Arc::clone(&schema), Codec::Lz4)?;
//! writer.write(&batch, false, &mut partition)?;
//! writer.write(&batch, true, &mut partition)?;
//!
//! let mut reader = BlockReader::new(schema)?;
//! let mut rest = partition.as_slice();
//! let mut rows = 0;
//! while !rest.is_empty() {
//!     let block = reader.read(rest)?;
//!     rows += block.batch.num_rows();
//!     rest = rest.get(block.length..).unwrap_or_default();
//! }
//! assert_eq!(rows, 6);
//! # Ok(())
//! # }
//! ```

mod bits;
mod body;
mod codec;
mod column;
mod decompress;
mod encoder;
mod error;
mod fingerprint;
mod header;
mod ipc_body;
mod layout;
mod message;
mod reader;
mod rows;
mod schema_match;
mod template;
mod types;
mod writer;

pub use codec::Codec;
pub use error::BlockError;
pub use fingerprint::schema_fingerprint;
pub use header::{BlockHeader, PayloadKind};
pub use reader::{BlockReader, DecodedBlock};
pub use rows::{BlockRows, RowRange};
pub use writer::{BlockStats, BlockWriter};
