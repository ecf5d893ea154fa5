//! The header of an array, checked.

use crate::error::RowError;
use crate::row::Span;

/// Bytes of the element count.
const HEADER: usize = 8;

/// An array whose null bits and elements are known to lie inside its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArraySpan {
    span: Span,
    count: usize,
}

impl ArraySpan {
    /// Stands for a null array: it has no elements.
    pub(crate) const EMPTY: Self = Self {
        span: Span::NULL,
        count: 0,
    };

    /// Checks the array in `span`, whose elements take `width` bytes each.
    ///
    /// # Safety
    ///
    /// The span must be readable.
    pub(crate) unsafe fn parse(span: Span, width: usize) -> Result<Self, RowError> {
        if span.len < HEADER {
            return Err(RowError::malformed(format!(
                "an array has only {} bytes",
                span.len
            )));
        }
        // SAFETY: the span is readable and holds the header.
        let count = unsafe { span.read::<u64>(0) };
        let fits = usize::try_from(count).ok().filter(|count| {
            let bits = count.div_ceil(64).saturating_mul(8);
            let elements = count.saturating_mul(width);
            HEADER.saturating_add(bits).saturating_add(elements) <= span.len
        });
        match fits {
            Some(count) => Ok(Self { span, count }),
            None => Err(RowError::malformed(format!(
                "an array of {count} elements of {width} bytes doesn't fit in its {} bytes",
                span.len
            ))),
        }
    }

    /// The number of elements.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// All bytes of the array; offsets count from their start.
    #[inline(always)]
    pub(crate) fn span(self) -> Span {
        self.span
    }

    /// Where the first element is, in bytes from the array's start.
    #[inline(always)]
    pub(crate) fn elements(self) -> usize {
        HEADER + self.count.div_ceil(64) * 8
    }

    /// The null bits of the elements `index * 64..`, with zeros past the last element.
    ///
    /// # Safety
    ///
    /// `index` must be less than the count over 64, rounded up, and the array be readable.
    #[inline(always)]
    pub(crate) unsafe fn null_word(self, index: usize) -> u64 {
        // SAFETY: the word is one of those that `parse` found to be inside.
        let word = unsafe { self.span.read::<u64>(HEADER + index * 8) };
        word & crate::bits::low_bits(self.count - index * 64)
    }
}
