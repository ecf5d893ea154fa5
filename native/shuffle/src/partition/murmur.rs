//! Spark's Murmur3 over single values.

/// The seed of the first column.
pub(super) const SEED: u32 = 42;

fn mix_word(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15);
    let hash = hash ^ word.wrapping_mul(0x1b87_3593);
    hash.rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

pub(super) fn hash_int(value: i32, seed: u32) -> u32 {
    finish(mix_word(seed, value.cast_unsigned()), 4)
}

pub(super) fn hash_long(value: i64, seed: u32) -> u32 {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    let low = u32::from_le_bytes([a, b, c, d]);
    let high = u32::from_le_bytes([e, f, g, h]);
    finish(mix_word(mix_word(seed, low), high), 8)
}

/// All NaNs are one value, and so are both zeros.
pub(super) fn hash_float(value: f32, seed: u32) -> u32 {
    let bits = if value == 0.0 {
        0
    } else if value.is_nan() {
        0x7fc0_0000
    } else {
        value.to_bits()
    };
    hash_int(bits.cast_signed(), seed)
}

/// All NaNs are one value, and so are both zeros.
pub(super) fn hash_double(value: f64, seed: u32) -> u32 {
    let bits = if value == 0.0 {
        0
    } else if value.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        value.to_bits()
    };
    hash_long(bits.cast_signed(), seed)
}

/// Unlike standard Murmur3, each byte of the tail is a word of its own, with its sign.
pub(super) fn hash_bytes(bytes: &[u8], seed: u32) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for word in words {
        hash = mix_word(hash, u32::from_le_bytes(*word));
    }
    for byte in tail {
        hash = mix_word(hash, i32::from(byte.cast_signed()).cast_unsigned());
    }
    // Spark's lengths are ints; an Arrow value of the types we take is no longer than that.
    finish(hash, u32::try_from(bytes.len()).unwrap_or(u32::MAX))
}

/// A decimal of more than 18 digits: its shortest big-endian two's complement form.
pub(super) fn hash_wide_decimal(value: i128, seed: u32) -> u32 {
    let bytes = value.to_be_bytes();
    let redundant = if value < 0 {
        value.leading_ones()
    } else {
        value.leading_zeros()
    };
    // One bit of the sign has to stay; 0 and -1 keep one byte.
    let skip = usize::try_from(redundant.saturating_sub(1) / 8).unwrap_or(0);
    hash_bytes(bytes.get(skip.min(15)..).unwrap_or_default(), seed)
}

/// Java's `pmod`: never negative.
pub(super) fn pmod(hash: u32, divisor: i32) -> u32 {
    hash.cast_signed().rem_euclid(divisor).cast_unsigned()
}
