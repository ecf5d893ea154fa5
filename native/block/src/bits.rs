//! Bitmaps made of runs of bits from any places.

/// Appends bits to bytes, from the lowest bit of each byte on.
pub(crate) struct BitAppender<'a> {
    out: &'a mut Vec<u8>,
    /// The bits that don't fill a word yet.
    word: u64,
    filled: usize,
    ones: usize,
}

const WORD: usize = 64;

impl<'a> BitAppender<'a> {
    /// Starts a bitmap at the end of `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            word: 0,
            filled: 0,
            ones: 0,
        }
    }

    /// Appends `length` bits of `bytes` from bit `start` on. Returns nothing if there are fewer.
    #[must_use]
    pub(crate) fn append(&mut self, bytes: &[u8], start: usize, length: usize) -> Option<()> {
        let end = start.checked_add(length)?.div_ceil(8);
        let mut bytes = bytes.get(start / 8..end)?;
        let shift = start % 8;
        let mut left = length;
        while left > 0 {
            let mut word = low_word(bytes) >> shift;
            if let (Some(next), 1..) = (bytes.get(8), shift) {
                word |= u64::from(*next) << (WORD - shift);
            }
            let bits = left.min(WORD);
            self.push(word, bits);
            left -= bits;
            bytes = bytes.get(8..).unwrap_or_default();
        }
        Some(())
    }

    /// Appends `length` bits that are set.
    pub(crate) fn append_ones(&mut self, length: usize) {
        let mut left = length;
        while left > 0 {
            let bits = left.min(WORD);
            self.push(u64::MAX, bits);
            left -= bits;
        }
    }

    /// Appends the `bits` lowest bits of `word`, at least one of them.
    fn push(&mut self, word: u64, bits: usize) {
        let word = word & (u64::MAX >> (WORD - bits));
        self.ones += usize::try_from(word.count_ones()).unwrap_or(0);
        self.word |= word << self.filled;
        self.filled += bits;
        if let Some(over) = self.filled.checked_sub(WORD) {
            self.out.extend_from_slice(&self.word.to_le_bytes());
            // What was shifted out; all of it if the last word had been full already.
            self.word = word.checked_shr(shift(bits - over)).unwrap_or(0);
            self.filled = over;
        }
    }

    /// Completes the last byte with zeros and returns how many bits are set.
    pub(crate) fn finish(self) -> usize {
        let bytes = self.word.to_le_bytes();
        let bytes = bytes.get(..self.filled.div_ceil(8));
        self.out.extend_from_slice(bytes.unwrap_or_default());
        self.ones
    }
}

fn shift(bits: usize) -> u32 {
    u32::try_from(bits).unwrap_or(u32::MAX)
}

/// The first 8 bytes, or what there is of them.
fn low_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn bit(bytes: &[u8], at: usize) -> bool {
        (bytes[at / 8] >> (at % 8)) & 1 == 1
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        });
        bytes.take(length).collect()
    }

    fn check(out: &[u8], ones: usize, expected: &[bool]) {
        assert_eq!(out.len(), expected.len().div_ceil(8));
        for at in 0..out.len() * 8 {
            assert_eq!(bit(out, at), expected.get(at).is_some_and(|bit| *bit));
        }
        assert_eq!(ones, expected.iter().filter(|bit| **bit).count());
    }

    #[test]
    fn every_place_and_length() {
        let bytes = noise(40);
        for start in 0..=70 {
            for length in 0..=bytes.len() * 8 - start {
                let mut out = Vec::new();
                let mut bits = BitAppender::new(&mut out);
                bits.append(&bytes, start, length).unwrap();
                let ones = bits.finish();
                let expected = (start..start + length).map(|at| bit(&bytes, at));
                check(&out, ones, &expected.collect::<Vec<_>>());
            }
        }
        let mut out = Vec::new();
        assert_eq!(BitAppender::new(&mut out).append(&bytes, 8, 313), None);
    }

    #[test]
    fn runs_follow_one_another() {
        let bytes = noise(200);
        for first in 0..140 {
            let mut out = vec![0xff];
            let mut bits = BitAppender::new(&mut out);
            let mut expected = Vec::new();
            for (start, length) in [(3, first), (8, 64), (77, 1), (500, 129), (6, first)] {
                bits.append(&bytes, start, length).unwrap();
                expected.extend((start..start + length).map(|at| bit(&bytes, at)));
                bits.append_ones(length / 2);
                expected.extend(vec![true; length / 2]);
            }
            let ones = bits.finish();
            check(&out[1..], ones, &expected);
        }
    }
}
