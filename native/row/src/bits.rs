//! Growing bitmaps in Arrow's order: the first value is the lowest bit of the first word.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

/// The low `count` bits set, for `count` up to 64.
#[inline(always)]
pub(crate) fn low_bits(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// Turns rows into columns: bit `b` of word `a` becomes bit `a` of word `b`.
///
/// Swaps the off-diagonal quarters of the 64 x 64 square, then those of each quarter, and so on:
/// about 6 operations a row, whatever the number of columns.
pub(crate) fn transpose_bits(words: &mut [u64; 64]) {
    let mut half = 32;
    let mut low = low_bits(32);
    while half > 0 {
        for block in words.chunks_exact_mut(2 * half) {
            let (upper, lower) = block.split_at_mut(half);
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let swapped = ((*upper >> half) ^ *lower) & low;
                *upper ^= swapped << half;
                *lower ^= swapped;
            }
        }
        half /= 2;
        low ^= low << half;
    }
}

/// A bitmap. Bits past `len` are zero.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// Empties the bitmap and makes room for `capacity` bits.
    pub(crate) fn begin(&mut self, capacity: usize) {
        self.words.clear();
        self.words.reserve(capacity.div_ceil(64));
        self.len = 0;
    }

    /// Appends the low `count` bits of `bits`, at most 64; the others must be zero.
    #[inline(always)]
    pub(crate) fn push(&mut self, bits: u64, count: usize) {
        let used = self.len % 64;
        self.len += count;
        match self.words.last_mut() {
            Some(last) if used > 0 => {
                *last |= bits << used;
                if used + count > 64 {
                    self.words.push(bits >> (64 - used));
                }
            }
            _ if count > 0 => self.words.push(bits),
            _ => {}
        }
    }

    /// Appends `count` ones.
    fn push_ones(&mut self, mut count: usize) {
        while count > 0 {
            // Fill the last word first, so that whole words follow.
            let step = count.min(64 - self.len % 64);
            self.push(low_bits(step), step);
            count -= step;
        }
    }

    /// Hands the bitmap over, leaving an empty one.
    pub(crate) fn finish(&mut self) -> BooleanBuffer {
        let bits = std::mem::take(self);
        BooleanBuffer::new(Buffer::from_vec(bits.words), 0, bits.len)
    }
}

/// A validity bitmap that takes no memory until the first null.
#[derive(Debug, Default)]
pub(crate) struct Validity {
    bits: Bits,
    len: usize,
    null_count: usize,
}

impl Validity {
    /// Empties the bitmap.
    pub(crate) fn begin(&mut self) {
        self.bits.begin(0);
        self.len = 0;
        self.null_count = 0;
    }

    /// Appends `count` values that aren't null.
    pub(crate) fn push_valid(&mut self, count: usize) {
        if self.null_count > 0 {
            self.bits.push_ones(count);
        }
        self.len += count;
    }

    /// Appends `count` values, at most 64, of which those with a set bit are null. Bits past
    /// `count` must be zero.
    #[inline]
    pub(crate) fn push_nulls(&mut self, nulls: u64, count: usize) {
        if self.null_count == 0 {
            if nulls == 0 {
                self.len += count;
                return;
            }
            self.bits.push_ones(self.len);
        }
        self.bits.push(nulls ^ low_bits(count), count);
        self.null_count += nulls.count_ones() as usize;
        self.len += count;
    }

    /// How many values were appended.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many of them are null.
    pub(crate) fn null_count(&self) -> usize {
        self.null_count
    }

    /// Hands the bitmap over if there is a null, leaving an empty one.
    pub(crate) fn finish(&mut self) -> Option<NullBuffer> {
        let Self {
            mut bits,
            null_count,
            ..
        } = std::mem::take(self);
        // SAFETY: null_count is the number of zeros pushed.
        (null_count > 0).then(|| unsafe { NullBuffer::new_unchecked(bits.finish(), null_count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_across_word_borders() {
        let mut bits = Bits::default();
        let mut expected = Vec::new();
        for count in (0..=64).chain([63, 1, 64, 2]) {
            let pattern = 0xdead_beef_1234_5679_u64.rotate_left(count) & low_bits(count as usize);
            bits.push(pattern, count as usize);
            expected.extend((0..count).map(|bit| pattern >> bit & 1 == 1));
        }
        assert_eq!(bits.finish().iter().collect::<Vec<_>>(), expected);
        assert!(bits.finish().is_empty());
    }

    #[test]
    fn transposes() {
        let rows: [u64; 64] =
            std::array::from_fn(|i| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i as u64 + 1));
        let mut columns = rows;
        transpose_bits(&mut columns);
        for (row, bits) in rows.iter().enumerate() {
            for (column, flipped) in columns.iter().enumerate() {
                assert_eq!(bits >> column & 1, flipped >> row & 1);
            }
        }
    }

    #[test]
    fn has_no_bitmap_without_a_null() {
        let mut validity = Validity::default();
        validity.push_valid(100);
        validity.push_nulls(0, 64);
        assert!(validity.finish().is_none());
        assert_eq!(validity.len(), 0);
    }

    #[test]
    fn catches_up_at_the_first_null() {
        let mut validity = Validity::default();
        validity.push_valid(70);
        validity.push_nulls(0b101, 3);
        validity.push_valid(200);
        let nulls = validity.finish().unwrap();
        assert_eq!((nulls.len(), nulls.null_count()), (273, 2));
        assert_eq!(
            (0..273).filter(|i| nulls.is_null(*i)).collect::<Vec<_>>(),
            vec![70, 72]
        );
        assert_eq!(nulls.inner().count_set_bits(), 271);
    }
}
