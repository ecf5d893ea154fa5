//! Spark's UnsafeRows, transposed into Arrow record batches, and back ([`UnsafeRowWriter`]).
//!
//! A shuffle writer holds rows as Spark made them: runs of bytes in off-heap pages. [`RowTransposer`]
//! reads a batch of such rows by address and writes typed Arrow buffers, one column after the other
//! within chunks of rows that fit a CPU cache. The type of a column is looked at once per chunk, never
//! per value. Values keep their exact bits: -0.0, NaN payloads and invalid UTF-8 included.
//!
//! # The layout that is read
//!
//! All numbers are little-endian. Rows in pages are only 4-byte aligned, so no load assumes alignment.
//!
//! ```text
//! row with n fields
//! +-----------------------------+-------------+-----+---------------+----------------------+
//! | null bits, ceil(n/64) words | field 0, 8B | ... | field n-1, 8B | variable-length data |
//! +-----------------------------+-------------+-----+---------------+----------------------+
//!   bit set = null                     |                               ^
//!                                      |  size: u32 | offset: u32 -----+  (from the row's start)
//!                                      +- or the value itself, in the low bytes
//!
//! array with n elements of w bytes (w = 1, 2, 4 or 8)
//! +----------+-----------------------------+------------------------+----------------------+
//! | n, 8B    | null bits, ceil(n/64) words | n * w, padded to 8     | variable-length data |
//! +----------+-----------------------------+------------------------+----------------------+
//!   offsets in 8-byte slots count from the array's start
//!
//! map                                           variant
//! +------------------+-----------+-------------+  +-------------------+-------+----------+
//! | key bytes k, 8B  | key array | value array |  | value bytes v, 4B | value | metadata |
//! +------------------+-----------+-------------+  +-------------------+-------+----------+
//!
//! decimal of more than 18 digits                 calendar interval
//! +-------------------------------------+        +------------+----------+------------------+
//! | 1..=16 bytes, two's complement, BE  |        | months, 4B | days, 4B | microseconds, 8B |
//! +-------------------------------------+        +------------+----------+------------------+
//! ```
//!
//! A struct is a row inside a row, with offsets from its own start.
//!
//! # Trust
//!
//! The caller vouches for the memory behind a row (see [`UnsafeRowRef::from_raw`]). What the bytes
//! say isn't trusted: each offset, size and count is checked against the row or array that holds it,
//! and a row that fails is a [`RowError::Malformed`] naming the column.

mod array;
mod bits;
mod columns;
mod descriptor;
mod error;
mod partial_spill;
mod pointer;
mod row;
mod row_size;
mod schema;
mod source;
mod transpose;
mod unsafe_rows;

pub use error::RowError;
pub use partial_spill::{compact_rows, fullest_first};
pub use pointer::{RowPage, RowPointer, sort_pointers};
pub use row::{UnsafeRowRef, rows_in_page};
pub use row_size::unsafe_row_bytes;
pub use schema::{SparkField, SparkSchema, SparkType};
pub use transpose::RowTransposer;
pub use unsafe_rows::{UnsafeRowWriter, UnsafeRows};

// UnsafeRow is in the host's byte order; loads here are plain, so the host must be little-endian.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "comet-row needs a little-endian host"
);
