//! Runs of bits at any place.

/// Appends `length` bits of `bytes` from bit `start` on to `out`, where they begin a byte, and
/// returns how many of them are set. What is left of the last byte is 0.
pub(crate) fn append_bits(
    bytes: &[u8],
    start: usize,
    length: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let from = out.len();
    let end = start.checked_add(length)?.div_ceil(8);
    let bytes = bytes.get(start / 8..end)?;
    let wanted = length.div_ceil(8);
    let shift = start % 8;
    if shift == 0 {
        out.extend_from_slice(bytes);
    } else {
        out.extend(bytes.windows(2).map(|pair| match pair {
            [low, high] => (low >> shift) | (high << (8 - shift)),
            _ => 0,
        }));
        // The last bits may all lie in one byte.
        if out.len() - from < wanted {
            out.push(bytes.last()? >> shift);
        }
    }
    let appended = out.get_mut(from..)?;
    if !length.is_multiple_of(8) {
        *appended.last_mut()? &= (1 << (length % 8)) - 1;
    }
    let (words, rest) = appended.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let ones = words.map(u64::count_ones).sum::<u32>();
    let ones = ones + rest.iter().map(|byte| byte.count_ones()).sum::<u32>();
    usize::try_from(ones).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used, clippy::indexing_slicing)]
    fn every_place_and_length() {
        let mut state = 1_u32;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(40)
        .collect();
        let bit = |bytes: &[u8], at: usize| (bytes[at / 8] >> (at % 8)) & 1;
        for start in 0..=64 {
            for length in 0..=bytes.len() * 8 - start {
                let mut out = vec![0xff];
                let ones = append_bits(&bytes, start, length, &mut out).unwrap();
                assert_eq!(out.len(), 1 + length.div_ceil(8));
                let mut expected = 0;
                for at in 0..out.len() * 8 - 8 {
                    let source = if at < length {
                        bit(&bytes, start + at)
                    } else {
                        0
                    };
                    assert_eq!(bit(&out[1..], at), source, "{start} {length} {at}");
                    expected += usize::from(source);
                }
                assert_eq!(ones, expected);
            }
        }
        assert_eq!(append_bits(&bytes, 8, 313, &mut Vec::new()), None);
    }
}
