//! Where a column's values come from: one field of many rows, or all elements of many arrays.
//!
//! Columns are generic over [`Source`], so each loop over values is compiled for both places and has
//! no dispatch inside.

mod elements;
mod row_field;

use arrow_buffer::ArrowNativeType;

use crate::bits::{Bits, Validity};
use crate::error::RowError;
use crate::row::{Located, Span};

pub(crate) use elements::Elements;
pub(crate) use row_field::{RowField, RowNulls};

/// A sequence of values of one type in readable memory.
pub(crate) trait Source: Copy {
    /// How many values there are.
    fn len(self) -> usize;

    /// Appends which values are null.
    fn validity(self, out: &mut Validity);

    /// Appends the values of a fixed-width type, null ones as the bytes have them.
    fn copy<T: ArrowNativeType>(self, out: &mut Vec<T>);

    /// Appends 8-byte integers, widened.
    fn widen(self, out: &mut Vec<i128>);

    /// Appends booleans, one byte each.
    fn bools(self, out: &mut Bits);

    /// Replaces `out` with references to variable-length values. They are known to lie inside their
    /// row or array.
    fn locate<L: Located>(self, out: &mut Vec<L>) -> Result<(), RowError>;
}

#[inline(always)]
fn is_set(word: u64, bit: usize) -> bool {
    word >> bit & 1 == 1
}

/// The offset and the length in an 8-byte slot.
#[inline(always)]
fn unpack(slot: u64) -> (usize, usize) {
    ((slot >> 32) as usize, (slot & 0xffff_ffff) as usize)
}

/// What an 8-byte slot points at, and whether that lies inside `parent` or is null.
#[inline(always)]
fn locate<L: Located>(parent: Span, slot: u64, null: bool) -> (L, bool) {
    let (offset, len) = unpack(slot);
    let value = if null {
        L::null(parent)
    } else {
        L::at(parent, offset, len)
    };
    (value, (offset + len <= parent.len) | null)
}

/// The error for the first slot that points outside.
#[cold]
fn outside(slots: impl Iterator<Item = (Span, u64, bool)>) -> RowError {
    for (parent, slot, null) in slots {
        let (offset, len) = unpack(slot);
        if !null && offset + len > parent.len {
            return RowError::malformed(format!(
                "{len} bytes at offset {offset} don't lie in the {} bytes around them",
                parent.len
            ));
        }
    }
    RowError::malformed("a value lies outside the bytes around it")
}
