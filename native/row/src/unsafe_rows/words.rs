//! The buffer that rows are written to, in words of 8 bytes.
//!
//! Where values go is worked out by measuring first, so every place exists. Each write looks again all
//! the same: a place that doesn't exist is passed over, so that no memory but the buffer's can change.

use super::measure::decimal_bytes;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Strings of fewer words are copied as if they had this many, where there is room.
const BLOCK: usize = 4;

/// Strings up to this many bytes are copied word by word; longer ones by a call.
const COPY_BY_WORDS: usize = 64;

/// A growing buffer, aligned to words.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: Vec<u64>,
}

/// The bytes of a value beside its slot, and the words that they take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) bytes: usize,
    pub(super) words: usize,
}

impl Words {
    /// Makes room for `words`; those that are new count as garbage.
    pub(super) fn reserve(&mut self, words: usize) {
        if self.words.len() < words {
            let room = words.max(2 * self.words.len());
            self.words.reserve_exact(room - self.words.len());
            self.words.resize(room, 0);
        }
    }

    /// Where the buffer begins.
    pub(super) fn address(&self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    /// Bytes that the buffer has allocated.
    pub(super) fn capacity(&self) -> usize {
        self.words.capacity() * WORD
    }

    /// Writes a word.
    #[inline(always)]
    pub(super) fn put(&mut self, at: usize, word: u64) {
        if let Some(place) = self.words.get_mut(at) {
            *place = word;
        }
    }

    /// Sets a bit of the bitmap that begins at a word.
    #[inline(always)]
    pub(super) fn set_bit(&mut self, at: usize, bit: usize) {
        if let Some(place) = self.words.get_mut(at + bit / 64) {
            *place |= 1 << (bit % 64);
        }
    }

    /// Zeroes some words.
    pub(super) fn clear(&mut self, at: usize, words: usize) {
        if let Some(places) = self.words.get_mut(at..at + words) {
            places.fill(0);
        }
    }

    /// Writes numbers of a width from a word on, and zeroes what is left of the last word.
    pub(super) fn put_narrow<const W: usize>(
        &mut self,
        at: usize,
        values: impl ExactSizeIterator<Item = [u8; W]>,
    ) {
        let bytes = values.len() * W;
        if let Some(places) = self.bytes(at, bytes.next_multiple_of(WORD)) {
            let (places, padding) = places.split_at_mut(bytes);
            padding.fill(0);
            for (place, value) in places.chunks_exact_mut(W).zip(values) {
                place.copy_from_slice(&value);
            }
        }
    }

    /// Writes the bytes `start..start + len` of `data`, padded with zeros. Up to `room` words from `at` on
    /// may change, since what belongs behind the value is written later.
    #[inline(always)]
    pub(super) fn put_bytes(
        &mut self,
        at: usize,
        room: usize,
        data: &[u8],
        start: usize,
        len: usize,
    ) -> Placed {
        let words = len.div_ceil(WORD);
        if len < BLOCK * WORD
            && room >= BLOCK
            && let Some(source) = data.get(start..start + BLOCK * WORD)
            && let Some(places) = self.words.get_mut(at..at + BLOCK)
        {
            // A copy of known size needs no loop, whose end would be hard to predict.
            for (place, word) in places.iter_mut().zip(source.chunks_exact(WORD)) {
                *place = load(word);
            }
            if let Some(place) = places.get_mut(len / WORD) {
                *place &= low_bytes(len % WORD);
            }
        } else if len <= COPY_BY_WORDS
            && let Some(source) = data.get(start..start + words * WORD)
            && let Some(places) = self.words.get_mut(at..at + words)
        {
            // The last word is read beyond the value, where the column's bytes go on that far.
            for (place, word) in places.iter_mut().zip(source.chunks_exact(WORD)) {
                *place = load(word);
            }
            if let (Some(place), 1..) = (places.last_mut(), len % WORD) {
                *place &= low_bytes(len % WORD);
            }
        } else if let Some(source) = data.get(start..start + len) {
            self.put_slice(at, words, source);
        }
        Placed { bytes: len, words }
    }

    #[inline(never)]
    fn put_slice(&mut self, at: usize, words: usize, source: &[u8]) {
        if let Some(places) = self.bytes(at, words * WORD) {
            let (places, padding) = places.split_at_mut(source.len());
            places.copy_from_slice(source);
            padding.fill(0);
        }
    }

    /// Writes byte strings one behind the other, padded with zeros at the end.
    pub(super) fn put_parts(&mut self, at: usize, parts: &[&[u8]]) -> Placed {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let words = bytes.div_ceil(WORD);
        if let Some(mut places) = self.bytes(at, words * WORD) {
            for part in parts {
                let (place, rest) = places.split_at_mut(part.len());
                place.copy_from_slice(part);
                places = rest;
            }
            places.fill(0);
        }
        Placed { bytes, words }
    }

    /// Writes the shortest big-endian bytes of a number, padded with zeros.
    #[inline(always)]
    pub(super) fn put_decimal(&mut self, at: usize, value: i128) -> Placed {
        let bytes = decimal_bytes(value);
        let words = bytes.div_ceil(WORD);
        // The first byte that counts comes first in memory.
        let [high, low] = halves(value << ((16 - bytes) * 8));
        self.put(at, high.swap_bytes());
        if words > 1 {
            self.put(at + 1, low.swap_bytes());
        }
        Placed { bytes, words }
    }

    /// The words from `at` as bytes.
    fn bytes(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        let words = self.words.get_mut(at..at + len.div_ceil(WORD))?;
        // SAFETY: any bytes are words and the other way round; the slice covers the same memory.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * WORD)
        };
        bytes.get_mut(..len)
    }
}

#[inline(always)]
fn load(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk::<WORD>()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The bits of the first bytes of a word, less than all.
#[inline(always)]
fn low_bytes(count: usize) -> u64 {
    (1 << (count * 8)) - 1
}

/// The high and the low half of a number.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Halves are what is asked for.
pub(super) fn halves(value: i128) -> [u64; 2] {
    [(value >> 64) as u64, value as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(words: &mut Words, len: usize) -> Vec<u8> {
        words.bytes(0, len).unwrap().to_vec()
    }

    #[test]
    fn strings_are_padded_with_zeros() {
        let data: Vec<u8> = (1..=200).collect();
        for len in 0..=120 {
            for (start, room) in [(0, 20), (3, 20), (3, 0), (data.len() - len, 20)] {
                let mut words = Words::default();
                words.reserve(21);
                words.words.fill(u64::MAX);
                let placed = words.put_bytes(0, room.max(len.div_ceil(8)), &data, start, len);
                assert_eq!((placed.bytes, placed.words), (len, len.div_ceil(8)));
                let mut expected = data[start..start + len].to_vec();
                expected.resize(placed.words * 8, 0);
                let written = bytes_of(&mut words, 21 * 8);
                assert_eq!(written[..expected.len()], expected, "{len} from {start}");
                let room = room.max(placed.words) * 8;
                assert!(written[room..].iter().all(|byte| *byte == 0xff));
            }
        }
    }

    #[test]
    fn decimals_are_as_short_as_can_be() {
        let mut words = Words::default();
        words.reserve(2);
        for (value, expected) in [
            (0, &[0][..]),
            (-1, &[0xff]),
            (128, &[0, 0x80]),
            (i128::from(i64::MIN), &[0x80, 0, 0, 0, 0, 0, 0, 0]),
            (1 << 63, &[0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            (
                i128::MIN,
                &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ),
        ] {
            let placed = words.put_decimal(0, value);
            assert_eq!(bytes_of(&mut words, placed.bytes), expected, "{value}");
        }
    }

    #[test]
    fn what_has_no_place_is_passed_over() {
        let mut words = Words::default();
        words.reserve(1);
        words.put(1, 7);
        words.set_bit(0, 64);
        words.put_bytes(0, 0, &[1; 100], 0, 9);
        words.put_bytes(0, 4, &[1; 100], 0, 9);
        words.put_parts(1, &[&[1]]);
        words.put_narrow(1, [[1_u8]].into_iter());
        assert_eq!(words.words, [0]);
    }
}
