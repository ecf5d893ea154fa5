//! Where a column's values come from: one field of many rows, or all elements of many arrays.
//!
//! Columns are generic over [`Source`], so each loop over values is compiled for both places and has
//! no dispatch inside.

use arrow_buffer::ArrowNativeType;

use crate::array::ArraySpan;
use crate::bits::{Bits, Validity};
use crate::error::RowError;
use crate::row::{Located, Span};

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

/// The nulls of a run of rows, by column.
#[derive(Clone, Copy)]
pub(crate) struct RowNulls<'a> {
    /// A square of 64 words for each 64 rows: word `column`, bit `row`. Bits past the last row are
    /// zero.
    pub(crate) squares: &'a [[u64; 64]],
    /// The column in the squares.
    pub(crate) column: usize,
}

impl RowNulls<'_> {
    /// The null bits of each 64 rows.
    #[inline(always)]
    fn words(self) -> impl Iterator<Item = u64> {
        self.squares
            .iter()
            .map(move |square| square.get(self.column).copied().unwrap_or(0))
    }
}

/// One field of a run of rows.
#[derive(Clone, Copy)]
pub(crate) struct RowField<'a> {
    rows: &'a [Span],
    slot: usize,
    nulls: Option<RowNulls<'a>>,
}

impl<'a> RowField<'a> {
    /// The field `index` of rows with `fields` fields. `nulls` has a square for each 64 rows, and
    /// is left out if no row has a null there.
    ///
    /// # Safety
    ///
    /// Each row must be readable and at least as long as its null bits and `fields` slots, and
    /// `index` be less than `fields`.
    pub(crate) unsafe fn new(
        rows: &'a [Span],
        index: usize,
        fields: usize,
        nulls: Option<RowNulls<'a>>,
    ) -> Self {
        Self {
            rows,
            slot: fields.div_ceil(64) * 8 + index * 8,
            nulls,
        }
    }

    #[inline(always)]
    fn read<T: ArrowNativeType>(self, row: Span) -> T {
        // SAFETY: `new` demands that the slot is in the row; native types are at most 8 bytes here,
        // except i128, which no source reads, and any bits are valid for them.
        unsafe { row.read::<T>(self.slot) }
    }

    /// Each 64 rows with their null bits, where there are any.
    #[inline(always)]
    fn null_words(self) -> impl Iterator<Item = (&'a [Span], u64)> {
        let words = self.nulls.into_iter().flat_map(RowNulls::words);
        self.rows.chunks(64).zip(words)
    }

    /// Each slot with its row and whether it is null.
    fn slots(self) -> impl Iterator<Item = (Span, u64, bool)> {
        let words = self.nulls.into_iter().flat_map(RowNulls::words);
        self.rows
            .chunks(64)
            .zip(words.chain(std::iter::repeat(0)))
            .flat_map(move |(rows, nulls)| {
                let slot =
                    move |(at, row): (usize, &Span)| (*row, self.read(*row), is_set(nulls, at));
                rows.iter().enumerate().map(slot)
            })
    }
}

impl Source for RowField<'_> {
    fn len(self) -> usize {
        self.rows.len()
    }

    fn validity(self, out: &mut Validity) {
        if self.nulls.is_none() {
            return out.push_valid(self.rows.len());
        }
        for (rows, nulls) in self.null_words() {
            out.push_nulls(nulls, rows.len());
        }
    }

    fn copy<T: ArrowNativeType>(self, out: &mut Vec<T>) {
        const { assert!(size_of::<T>() <= 8) };
        out.extend(self.rows.iter().map(|row| self.read::<T>(*row)));
    }

    fn widen(self, out: &mut Vec<i128>) {
        out.extend(
            self.rows
                .iter()
                .map(|row| i128::from(self.read::<i64>(*row))),
        );
    }

    fn bools(self, out: &mut Bits) {
        for rows in self.rows.chunks(64) {
            let bit = |(at, row): (usize, &Span)| u64::from(self.read::<u8>(*row) != 0) << at;
            let bits = rows
                .iter()
                .enumerate()
                .map(bit)
                .fold(0, |all, bit| all | bit);
            out.push(bits, rows.len());
        }
    }

    fn locate<L: Located>(self, out: &mut Vec<L>) -> Result<(), RowError> {
        out.clear();
        let mut inside = true;
        if self.nulls.is_some() {
            for (rows, nulls) in self.null_words() {
                out.extend(rows.iter().enumerate().map(|(at, row)| {
                    let null = is_set(nulls, at);
                    let (value, fits) = locate(*row, self.read(*row), null);
                    inside &= fits;
                    value
                }));
            }
        } else {
            out.extend(self.rows.iter().map(|row| {
                let (value, fits) = locate(*row, self.read(*row), false);
                inside &= fits;
                value
            }));
        }
        if inside {
            return Ok(());
        }
        out.clear();
        Err(outside(self.slots()))
    }
}

/// All elements of a run of arrays.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'a> {
    arrays: &'a [ArraySpan],
    len: usize,
}

impl<'a> Elements<'a> {
    /// The elements of `arrays`.
    ///
    /// # Safety
    ///
    /// Each array must be readable, and made by [`ArraySpan::parse`] with the width that the
    /// column's type has in arrays.
    pub(crate) unsafe fn new(arrays: &'a [ArraySpan]) -> Self {
        Self {
            arrays,
            len: arrays.iter().map(|array| array.count()).sum(),
        }
    }

    /// The null bits of up to 64 elements each, with their number.
    #[inline(always)]
    fn null_words(array: ArraySpan) -> impl Iterator<Item = (u64, usize)> {
        let count = array.count();
        (0..count.div_ceil(64)).map(move |word| {
            // SAFETY: `new` demands a readable array, and `word` is below the number of words.
            (
                unsafe { array.null_word(word) },
                (count - word * 64).min(64),
            )
        })
    }

    /// Reads element `index`, which must be below the count.
    #[inline(always)]
    fn read<T: ArrowNativeType>(array: ArraySpan, index: usize) -> T {
        // SAFETY: `parse` found count elements of the width of T inside the array; any bits are
        // valid for the numbers that columns read.
        unsafe {
            array
                .span()
                .read::<T>(array.elements() + index * size_of::<T>())
        }
    }

    /// Each 8-byte slot with its array and whether it is null.
    fn slots(self) -> impl Iterator<Item = (Span, u64, bool)> {
        self.arrays.iter().flat_map(|array| {
            Self::null_words(*array)
                .enumerate()
                .flat_map(move |(word, (nulls, count))| {
                    (0..count).map(move |bit| {
                        let slot = Self::read(*array, word * 64 + bit);
                        (array.span(), slot, is_set(nulls, bit))
                    })
                })
        })
    }
}

impl Source for Elements<'_> {
    fn len(self) -> usize {
        self.len
    }

    fn validity(self, out: &mut Validity) {
        for array in self.arrays {
            for (nulls, count) in Self::null_words(*array) {
                out.push_nulls(nulls, count);
            }
        }
    }

    fn copy<T: ArrowNativeType>(self, out: &mut Vec<T>) {
        out.reserve(self.len);
        for array in self.arrays.iter().filter(|array| array.count() > 0) {
            let count = array.count();
            // SAFETY: `parse` found count elements of T's width inside the array, and the sum of
            // all counts was reserved. Bytes are copied, since the source may be unaligned; any
            // bits are valid for the numbers that columns read.
            unsafe {
                let from = array.span().address.add(array.elements());
                let to = out.as_mut_ptr().add(out.len());
                std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), count * size_of::<T>());
                out.set_len(out.len() + count);
            }
        }
    }

    fn widen(self, out: &mut Vec<i128>) {
        out.reserve(self.len);
        for array in self.arrays {
            let value = |index| i128::from(Self::read::<i64>(*array, index));
            out.extend((0..array.count()).map(value));
        }
    }

    fn bools(self, out: &mut Bits) {
        for array in self.arrays {
            for (word, (_, count)) in Self::null_words(*array).enumerate() {
                let bit = |at| u64::from(Self::read::<u8>(*array, word * 64 + at) != 0) << at;
                out.push((0..count).map(bit).fold(0, |all, bit| all | bit), count);
            }
        }
    }

    fn locate<L: Located>(self, out: &mut Vec<L>) -> Result<(), RowError> {
        out.clear();
        out.reserve(self.len);
        let mut inside = true;
        for array in self.arrays {
            for (word, (nulls, count)) in Self::null_words(*array).enumerate() {
                out.extend((0..count).map(|bit| {
                    let slot = Self::read(*array, word * 64 + bit);
                    let (value, fits) = locate(array.span(), slot, is_set(nulls, bit));
                    inside &= fits;
                    value
                }));
            }
        }
        if inside {
            return Ok(());
        }
        out.clear();
        Err(outside(self.slots()))
    }
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
