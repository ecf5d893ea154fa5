//! How many words values take beside their slots, column by column.

use std::ops::Range;

use super::values::{Blobs, Column, Nulls, Values};
use super::words::WORD;
use crate::row_size::significant_bytes;

/// Words that decimals of more than 18 digits and intervals take in a row or struct, null or not.
pub(super) const WIDE: usize = 2;

/// What holds values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A row or a struct: slots of a word, and wide values keep their place if they are null.
    Row,
    /// An array: slots as wide as the values, and nulls take nothing else.
    Array,
}

/// Words of the null bits and the slots of a row or struct.
pub(super) fn fixed_words(fields: usize) -> usize {
    fields.div_ceil(64) + fields
}

impl Column<'_> {
    /// Adds the words that each value of a range takes beside its slot.
    pub(super) fn measure(&mut self, range: Range<usize>, holder: Holder, out: &mut [usize]) {
        let nulls = self.nulls;
        let first = range.start;
        match &mut self.values {
            Values::Bytes(blobs) => {
                let blobs = *blobs;
                add(nulls, first, out, |value| blobs.len(value).div_ceil(WORD));
            }
            Values::Variant(value, metadata) => {
                let (value, metadata) = (*value, *metadata);
                add(nulls, first, out, |row| variant_words(value, metadata, row));
            }
            Values::WideDecimal(_) | Values::Calendar(..) if holder == Holder::Row => {
                out.iter_mut().for_each(|words| *words += WIDE);
            }
            Values::WideDecimal(values) => {
                let values = *values;
                add(nulls, first, out, |value| {
                    values
                        .get(value)
                        .map_or(0, |value| decimal_bytes(*value).div_ceil(WORD))
                });
            }
            Values::Calendar(..) => add(nulls, first, out, |_| WIDE),
            Values::Struct(fields) => {
                let mut sizes = vec![fixed_words(fields.len()); out.len()];
                for field in fields {
                    field.measure(range.clone(), Holder::Row, &mut sizes);
                }
                self.keep(first, sizes, out);
            }
            Values::List(offsets, element) => {
                let (start, end) = offsets.outer(first, out.len());
                element.measure_elements(start, end);
                let sizes = range.map(|value| {
                    let (start, end) = offsets.span(value);
                    element.array_words(start, end)
                });
                let sizes = sizes.collect();
                self.keep(first, sizes, out);
            }
            Values::Map(offsets, keys, values) => {
                let (start, end) = offsets.outer(first, out.len());
                keys.measure_elements(start, end);
                values.measure_elements(start, end);
                let sizes = range.map(|value| {
                    let (start, end) = offsets.span(value);
                    // The size of the keys comes first.
                    1 + keys.array_words(start, end) + values.array_words(start, end)
                });
                let sizes = sizes.collect();
                self.keep(first, sizes, out);
            }
            _ => {}
        }
    }

    /// Words of an array of the elements from `start` to `end`, which were measured.
    pub(super) fn array_words(&self, start: usize, end: usize) -> usize {
        let count = end.saturating_sub(start);
        let from = start.saturating_sub(self.measured_from);
        let beside = self.sizes.get(from..from + count).unwrap_or_default();
        self.array_fixed_words(count) + beside.iter().sum::<usize>()
    }

    /// Words of the count, the null bits and the slots of an array.
    pub(super) fn array_fixed_words(&self, count: usize) -> usize {
        1 + count.div_ceil(64) + (count * self.element_width()).div_ceil(WORD)
    }

    /// Words that a value of a nested type takes beside its slot.
    pub(super) fn nested_words(&self, value: usize) -> usize {
        let size = self.sizes.get(value.saturating_sub(self.measured_from));
        size.copied().unwrap_or_default()
    }

    fn element_width(&self) -> usize {
        match self.values {
            Values::Boolean(_) | Values::Int8(_) => 1,
            Values::Int16(_) => 2,
            Values::Int32(_) | Values::Float32(_) => 4,
            _ => 8,
        }
    }

    /// Measures elements and keeps their sizes, if anything is to be had beside the slots.
    fn measure_elements(&mut self, start: usize, end: usize) {
        self.sizes.clear();
        self.measured_from = start;
        if !self.is_fixed() {
            let mut sizes = vec![0; end.saturating_sub(start)];
            self.measure(start..end.max(start), Holder::Array, &mut sizes);
            self.sizes = sizes;
            self.measured_from = start;
        }
    }

    fn is_fixed(&self) -> bool {
        !matches!(
            self.values,
            Values::Bytes(_)
                | Values::Variant(..)
                | Values::WideDecimal(_)
                | Values::Calendar(..)
                | Values::Struct(_)
                | Values::List(..)
                | Values::Map(..)
        )
    }

    /// Keeps the sizes of nested values, none for null ones, and adds them to `out`.
    fn keep(&mut self, first: usize, mut sizes: Vec<usize>, out: &mut [usize]) {
        for (value, (size, out)) in (first..).zip(sizes.iter_mut().zip(out)) {
            if self.nulls.is_null(value) {
                *size = 0;
            }
            *out += *size;
        }
        self.sizes = sizes;
        self.measured_from = first;
    }
}

/// The shortest big-endian bytes of a decimal.
#[inline(always)]
pub(super) fn decimal_bytes(value: i128) -> usize {
    usize::try_from(significant_bytes(value)).unwrap_or(size_of::<i128>())
}

/// Words of a variant: the length of the value, the value and the metadata.
fn variant_words(value: Blobs, metadata: Blobs, row: usize) -> usize {
    (size_of::<u32>() + value.len(row) + metadata.len(row)).div_ceil(WORD)
}

/// Adds the words of the values that aren't null.
#[inline(always)]
fn add(nulls: Nulls, first: usize, out: &mut [usize], words: impl Fn(usize) -> usize) {
    if nulls.any() {
        for (value, out) in (first..).zip(out) {
            if !nulls.is_null(value) {
                *out += words(value);
            }
        }
    } else {
        for (value, out) in (first..).zip(out) {
            *out += words(value);
        }
    }
}
