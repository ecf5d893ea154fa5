//! Spark's column vectors, copied into Arrow arrays.
//!
//! Spark reuses the vectors of a scan for its next batch, so that a shuffle that stages batches has to
//! copy them. [`VectorImporter`] does that once, column by column, from the memory in which the
//! vectors hold their values. Arrow arrays that Rust code exported ([`export`]) are taken over as they
//! are, by Arrow's C data interface.
//!
//! # The descriptor
//!
//! The JVM describes a batch by a run of 64-bit numbers:
//!
//! ```text
//! batch  = count of all numbers, rows, address of partition ids (0 for none), column*
//! column = one of (a kind, then what it needs; "nulls" is the address of a byte for each row, not
//!          0 for a null, or 0 if there is none)
//!   0 all null
//!   1 values:     nulls, address of the values
//!   2 bytes:      nulls, offsets, lengths (addresses of 32-bit numbers), address of the bytes
//!   3 list, map:  nulls, offsets, lengths, number of elements, then the element, or key and value
//!   4 struct:     nulls, then the fields
//!   5 dictionary: nulls, address of 32-bit indices, entries, then the column of the entries
//!   6 Arrow:      address of an exported array, its first row
//! ```
//!
//! Values have the widths of Spark's vectors: a byte for a boolean, 4 or 8 bytes for decimals of up to
//! 9 or 18 digits; larger decimals are bytes, big-endian and two's complement. Calendar intervals are
//! structs of months, days and microseconds, variants of value and metadata. Offsets, lengths and
//! indices of null rows are of no meaning.

mod column;
mod descriptor;
mod error;
mod exported;
mod import;
mod spans;
mod values;

pub use error::VectorError;
pub use exported::{ExportedArray, export, release};
pub use import::{PARTITION_ID_FIELD, VectorImporter};

// Vectors hold values in the host's byte order, Arrow's are little-endian.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "comet-vector needs a little-endian host"
);
