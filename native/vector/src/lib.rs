//! Spark's column vectors, copied into Arrow arrays.
//!
//! Spark reuses the vectors of a scan for its next batch, so that a shuffle that stages batches has to
//! copy them. [`VectorImporter`] does that once, column by column, from the memory in which the
//! vectors hold their values, be it native or an array of the JVM's ([`JavaHeap`]). What only the JVM
//! can read it collects in memory that the arrays take over. Arrow arrays that Rust code exported
//! ([`export`]) are taken over as they are, by Arrow's C data interface.
//!
//! # The descriptor
//!
//! The JVM describes a batch by a run of 64-bit numbers:
//!
//! ```text
//! batch  = count of all numbers, rows, place of partition ids (0 for none), column*
//! place  = an address, or a negative number: array << 40 | byte, with the highest bit set
//! column = one of (a kind, then what it needs; "nulls" is the place of a byte for each row, not
//!          0 for a null, or 0 if there is none)
//!   0 all null
//!   1 values:     nulls, place of the values
//!   2 bytes:      nulls, offsets, lengths (places of 32-bit numbers), place of the bytes
//!   3 list, map:  nulls, offsets, lengths, number of the first element and how many there are from
//!                 there, then the element, or key and value
//!   4 struct:     nulls, then the fields
//!   5 dictionary: nulls, place of 32-bit indices, number of entries, then these as collected
//!   6 Arrow:      address of an exported array, its first row
//!   7 collected
//! collected = validity, buffers, children; nothing for a column without a type
//!   validity, buffer = address (0 for none), bytes, capacity of memory of [`reallocate`]
//!   children         = a list's number of elements, and these; a map's, keys and values; the fields
//!                      of a struct; each as collected
//! ```
//!
//! Values have the widths of Spark's vectors: a byte for a boolean, 4 or 8 bytes for decimals of up to
//! 9 or 18 digits; larger decimals are bytes, big-endian and two's complement. Calendar intervals are
//! structs of months, days and microseconds, variants of value and metadata. Offsets, lengths and
//! indices of null rows are of no meaning. Collected columns have the buffers of Arrow's layout.

mod collected;
mod column;
mod descriptor;
mod error;
mod exported;
mod heap;
mod import;
mod memory;
mod size;
mod spans;
mod values;

pub use error::VectorError;
pub use exported::{ExportedArray, export, release};
pub use heap::JavaHeap;
pub use import::{PARTITION_ID_FIELD, VectorImporter};
pub use memory::{free, reallocate};

// Vectors hold values in the host's byte order, Arrow's are little-endian.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "comet-vector needs a little-endian host"
);
