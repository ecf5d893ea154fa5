//! Where the values of a column go: one field of many rows, or all elements of many arrays.
//!
//! Columns are written by code that is generic over [`Sink`], so each loop over values is compiled for
//! both places and has no dispatch inside.

use super::measure::Holder;
use super::values::Nulls;
use super::words::{Placed, WORD, Words};

/// The values' places.
pub(super) trait Sink {
    /// What the places are in.
    const HOLDER: Holder;

    /// Writes values of a fixed width to their slots, zeros for nulls.
    fn fixed<T: Number>(self, nulls: Nulls, out: &mut Words, value: impl Fn(usize) -> T);

    /// Has `write` put each value beside its slot, given the value's index, the word where its bytes go
    /// and how many words may change from there on, and points the slots at them. Nulls have zeros.
    fn beside(
        self,
        nulls: Nulls,
        out: &mut Words,
        write: impl FnMut(&mut Words, usize, usize, usize) -> Placed,
    );
}

/// A value in its slot.
pub(super) trait Number: Copy + Default {
    /// The value in the low bytes of a word.
    fn word(self) -> u64;

    /// Writes many values one behind the other.
    fn put_all(out: &mut Words, at: usize, values: impl ExactSizeIterator<Item = Self>);
}

macro_rules! number {
    ($($type:ty as $bits:ty),*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(<$bits>::from_le_bytes(self.to_le_bytes()))
            }

            fn put_all(out: &mut Words, at: usize, values: impl ExactSizeIterator<Item = Self>) {
                out.put_narrow(at, values.map(Self::to_le_bytes));
            }
        }
    )*};
}

number!(
    u8 as u8, i8 as u8, i16 as u16, i32 as u32, i64 as u64, u64 as u64, f32 as u32, f64 as u64
);

/// The value in each row.
pub(super) trait Pick: Copy {
    /// The index of a row's value in the columns.
    fn value(self, row: usize) -> usize;
}

/// Consecutive values.
#[derive(Debug, Clone, Copy)]
pub(super) struct From(pub(super) usize);

impl Pick for From {
    #[inline(always)]
    fn value(self, row: usize) -> usize {
        self.0 + row
    }
}

/// Any values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picked<'a>(pub(super) &'a [usize]);

impl Pick for Picked<'_> {
    #[inline(always)]
    fn value(self, row: usize) -> usize {
        self.0.get(row).copied().unwrap_or_default()
    }
}

/// A row or struct that is being written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowPlace {
    /// The word where it begins.
    pub(super) start: usize,
    /// The word where the next value beside the slots goes.
    pub(super) next: usize,
    /// The word where it ends.
    pub(super) end: usize,
    /// Null bits of up to 64 fields.
    pub(super) nulls: u64,
}

/// One field of many rows.
#[derive(Debug)]
pub(super) struct FieldSink<'a, P> {
    pub(super) rows: &'a mut [RowPlace],
    pub(super) pick: P,
    /// Words from the start of a row to the slot.
    pub(super) slot: usize,
    /// The field's null bit in its word.
    pub(super) bit: u64,
    /// What a null has beside its slot: nothing, or words of zeros and the bytes that its slot tells.
    pub(super) reserved: Option<Placed>,
}

impl<P: Pick> Sink for FieldSink<'_, P> {
    const HOLDER: Holder = Holder::Row;

    #[inline(always)]
    fn fixed<T: Number>(self, nulls: Nulls, out: &mut Words, value: impl Fn(usize) -> T) {
        if nulls.any() {
            for (index, row) in self.rows.iter_mut().enumerate() {
                let index = self.pick.value(index);
                let null = u64::from(nulls.is_null(index));
                row.nulls |= self.bit * null;
                // All ones for a value, zeros for a null.
                let mask = null.wrapping_sub(1);
                out.put(row.start + self.slot, value(index).word() & mask);
            }
        } else {
            for (index, row) in self.rows.iter().enumerate() {
                let word = value(self.pick.value(index)).word();
                out.put(row.start + self.slot, word);
            }
        }
    }

    #[inline(always)]
    fn beside(
        self,
        nulls: Nulls,
        out: &mut Words,
        mut write: impl FnMut(&mut Words, usize, usize, usize) -> Placed,
    ) {
        for (index, row) in self.rows.iter_mut().enumerate() {
            let index = self.pick.value(index);
            let (placed, at) = (row.next, row.start + self.slot);
            if !nulls.is_null(index) {
                let value = write(out, index, placed, row.end.saturating_sub(placed));
                out.put(at, reference(placed - row.start, value.bytes));
                row.next += self.reserved.map_or(value.words, |reserved| reserved.words);
            } else {
                row.nulls |= self.bit;
                match self.reserved {
                    Some(reserved) => {
                        out.clear(placed, reserved.words);
                        out.put(at, reference(placed - row.start, reserved.bytes));
                        row.next += reserved.words;
                    }
                    None => out.put(at, 0),
                }
            }
        }
    }
}

/// An array that is being written: its place and its elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrayPlace {
    pub(super) start: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl ArrayPlace {
    /// The word of the first slot.
    fn slots(self) -> usize {
        self.start + 1 + self.count.div_ceil(64)
    }

    fn elements(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// All elements of many arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementSink<'a>(pub(super) &'a [ArrayPlace]);

impl ElementSink<'_> {
    /// Writes counts and null bits.
    pub(super) fn headers(self, nulls: Nulls, out: &mut Words, all_null: bool) {
        for array in self.0 {
            out.put(array.start, array.count as u64);
            out.clear(array.start + 1, array.count.div_ceil(64));
            if all_null || nulls.any() {
                for (bit, element) in array.elements().enumerate() {
                    if all_null || nulls.is_null(element) {
                        out.set_bit(array.start + 1, bit);
                    }
                }
            }
        }
    }
}

impl Sink for ElementSink<'_> {
    const HOLDER: Holder = Holder::Array;

    fn fixed<T: Number>(self, nulls: Nulls, out: &mut Words, value: impl Fn(usize) -> T) {
        for array in self.0 {
            let elements = array.elements();
            if nulls.any() {
                let or_zero = |element| {
                    if nulls.is_null(element) {
                        T::default()
                    } else {
                        value(element)
                    }
                };
                T::put_all(out, array.slots(), elements.map(or_zero));
            } else {
                T::put_all(out, array.slots(), elements.map(&value));
            }
        }
    }

    fn beside(
        self,
        nulls: Nulls,
        out: &mut Words,
        mut write: impl FnMut(&mut Words, usize, usize, usize) -> Placed,
    ) {
        for array in self.0 {
            let mut next = array.slots() + array.count;
            for (slot, element) in (array.slots()..).zip(array.elements()) {
                if nulls.is_null(element) {
                    out.put(slot, 0);
                } else {
                    let value = write(out, element, next, 0);
                    out.put(slot, reference(next - array.start, value.bytes));
                    next += value.words;
                }
            }
        }
    }
}

/// A slot that points at bytes: their distance from the start of the row or array, and their number.
#[inline(always)]
fn reference(words: usize, bytes: usize) -> u64 {
    ((words * WORD) as u64) << 32 | bytes as u64
}
