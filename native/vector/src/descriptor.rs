//! Reading the numbers that describe a batch.

use crate::VectorError;

/// The numbers of a batch that are still to be read.
pub(crate) struct Numbers<'a> {
    rest: &'a [i64],
}

impl<'a> Numbers<'a> {
    /// # Safety
    ///
    /// `address` must be that of as many initialised numbers as the first of them says, and they
    /// must stay as they are for `'a`.
    pub(crate) unsafe fn at(address: i64) -> Result<Self, VectorError> {
        let start = address as *const i64;
        if start.is_null() || !start.is_aligned() {
            return Err(VectorError::Descriptor(format!("no numbers at {address}")));
        }
        // SAFETY: the caller vouches for at least one number.
        let count = unsafe { *start };
        let count = usize::try_from(count)
            .map_err(|_| VectorError::Descriptor(format!("{count} numbers")))?;
        // SAFETY: the caller vouches for as many.
        let all = unsafe { std::slice::from_raw_parts(start, count) };
        Ok(Self {
            rest: all.get(1..).unwrap_or_default(),
        })
    }

    pub(crate) fn next(&mut self) -> Result<i64, VectorError> {
        let (first, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| VectorError::Descriptor("it ends early".to_owned()))?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn next_count(&mut self) -> Result<usize, VectorError> {
        let count = self.next()?;
        usize::try_from(count).map_err(|_| VectorError::Descriptor(format!("a count of {count}")))
    }

    pub(crate) fn end(&self) -> Result<(), VectorError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(VectorError::Descriptor(format!("{left} numbers are left"))),
        }
    }
}
