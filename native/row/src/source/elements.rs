//! All elements of many arrays.

use arrow_buffer::ArrowNativeType;

use super::{Source, is_set, locate, outside};
use crate::array::ArraySpan;
use crate::bits::{Bits, Validity};
use crate::error::RowError;
use crate::row::{Located, Span};

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
                    let (value, fits): (L, _) = locate(array.span(), slot, is_set(nulls, bit));
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
