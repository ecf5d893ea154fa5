//! Arrays of the JVM's heap, which only the JVM can read.

use std::error::Error;

/// A reference to a byte of an array is a negative number: the sign, 23 bits of the array's number
/// and 40 bits of the byte's.
const OFFSET_BITS: u32 = 40;
const ARRAY_BITS: u32 = 23;

/// Copies from the arrays that a batch refers to by number.
pub trait JavaHeap {
    /// Copies bytes of the array of that number from byte `offset` on, as many as `target` has.
    ///
    /// # Errors
    ///
    /// If there is no such array, if it is shorter, or if the JVM cannot be asked.
    fn copy(
        &self,
        array: usize,
        offset: usize,
        target: &mut [u8],
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The array and the byte that a negative number refers to.
pub(crate) fn parse(reference: i64) -> (usize, usize) {
    let bits = |shift: u32, width: u32| {
        let part = (reference >> shift) & ((1 << width) - 1);
        // Masked, it is neither negative nor too large.
        usize::try_from(part).unwrap_or(usize::MAX)
    };
    (bits(OFFSET_BITS, ARRAY_BITS), bits(0, OFFSET_BITS))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn references_are_told_apart() {
        let reference = |array: i64, offset: i64| i64::MIN | (array << 40) | offset;
        let largest = ((1 << 23) - 1, (1_i64 << 40) - 1);
        for (array, offset) in [(0, 0), (1, 0), (0, 1), (5, 1 << 33), largest] {
            let (found, at) = parse(reference(array, offset));
            assert_eq!(i64::try_from(found).unwrap(), array);
            assert_eq!(i64::try_from(at).unwrap(), offset);
        }
    }
}
