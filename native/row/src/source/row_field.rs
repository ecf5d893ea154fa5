//! One field of many rows.

use arrow_buffer::ArrowNativeType;

use super::{Source, is_set, locate, outside};
use crate::bits::{Bits, Validity};
use crate::error::RowError;
use crate::row::{Located, Span};

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
                    let (value, fits): (L, _) = locate(*row, self.read(*row), null);
                    inside &= fits;
                    value
                }));
            }
        } else {
            out.extend(self.rows.iter().map(|row| {
                let (value, fits): (L, _) = locate(*row, self.read(*row), false);
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
