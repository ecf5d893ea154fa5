//! Values of variable length: where they lie, and bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::VectorError;
use crate::descriptor::Numbers;
use crate::values::{clear_nulls, decimals};

/// Where each row's bytes or elements lie.
pub(crate) struct Spans {
    pub(crate) nulls: Option<NullBuffer>,
    offsets: Vec<i32>,
    lengths: Vec<i32>,
}

impl Spans {
    /// # Safety
    ///
    /// At the places there must be nulls, offsets and lengths of `rows` rows.
    pub(crate) unsafe fn read(rows: usize, numbers: &mut Numbers<'_>) -> Result<Self, VectorError> {
        // SAFETY: as the caller vouches.
        unsafe {
            let nulls = numbers.next_nulls(rows)?;
            let offsets = numbers.next_values::<i32>(rows)?;
            let mut lengths = numbers.next_values::<i32>(rows)?;
            clear_nulls(&mut lengths, nulls.as_ref());
            let spans = Self {
                nulls,
                offsets,
                lengths,
            };
            let bad = spans
                .iter()
                .find(|(start, length)| *start < 0 || *length < 0);
            if let Some(bad) = bad {
                let detail = format!("offset and length {bad:?}");
                return Err(VectorError::Descriptor(detail));
            }
            Ok(spans)
        }
    }

    /// Makes the spans begin at the element of that number.
    pub(crate) fn begin_at(&mut self, first: usize) -> Result<(), VectorError> {
        let first = i32::try_from(first).unwrap_or(i32::MAX);
        let spans = self.offsets.iter_mut().zip(&self.lengths);
        for (start, _) in spans.filter(|(_, length)| **length > 0) {
            *start -= first;
            if *start < 0 {
                let detail = format!("a list that begins {} elements early", -*start);
                return Err(VectorError::Descriptor(detail));
            }
        }
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = (i32, i32)> {
        let spans = self.offsets.iter().zip(&self.lengths);
        // The offset of a row without bytes says nothing.
        spans.map(|(start, length)| (if *length == 0 { 0 } else { *start }, *length))
    }

    /// Arrow's offsets, and their last one.
    pub(crate) fn arrow_offsets(&self) -> Result<(OffsetBuffer<i32>, usize), VectorError> {
        let mut end = 0_i32;
        let mut offsets = Vec::with_capacity(self.lengths.len() + 1);
        offsets.push(0);
        for length in &self.lengths {
            end = end.checked_add(*length).ok_or_else(|| {
                let all = self
                    .lengths
                    .iter()
                    .map(|length| u64::from(length.unsigned_abs()));
                VectorError::TooLarge {
                    rows: self.lengths.len(),
                    bytes: all.sum(),
                }
            })?;
            offsets.push(end);
        }
        let total = usize::try_from(end).unwrap_or(0);
        Ok((OffsetBuffer::new(ScalarBuffer::from(offsets)), total))
    }

    /// The spans, those that follow one another joined: start and length.
    pub(crate) fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (start, length) in self.iter() {
            let (Ok(start), Ok(length)) = (usize::try_from(start), usize::try_from(length)) else {
                continue;
            };
            match runs.last_mut() {
                _ if length == 0 => {}
                Some((from, run)) if *from + *run == start => *run += length,
                _ => runs.push((start, length)),
            }
        }
        runs
    }

    /// Copies the bytes of the spans, `total` in all, from the next place.
    ///
    /// # Safety
    ///
    /// There must be all that the spans refer to.
    unsafe fn copy(&self, numbers: &mut Numbers<'_>, total: usize) -> Result<Vec<u8>, VectorError> {
        let bytes = numbers.next_bytes()?;
        numbers.charge(total)?;
        let mut copied = vec![0; total];
        let mut rest = copied.as_mut_slice();
        for (start, length) in self.runs() {
            let none = || VectorError::Descriptor("no place of bytes".to_owned());
            let bytes = bytes.as_ref().ok_or_else(none)?;
            let (run, others) = rest.split_at_mut_checked(length).ok_or_else(none)?;
            // SAFETY: as the caller vouches.
            unsafe { bytes.copy(start, run) }?;
            rest = others;
        }
        Ok(copied)
    }
}

/// # Safety
///
/// At the places there must be nulls, offsets and lengths of `rows` rows, and their bytes.
pub(crate) unsafe fn bytes(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    let spans = unsafe { Spans::read(rows, numbers) }?;
    let (offsets, total) = spans.arrow_offsets()?;
    // SAFETY: as the caller vouches.
    let copied = unsafe { spans.copy(numbers, total) }?;
    match data_type {
        DataType::Binary => Ok(Arc::new(BinaryArray::new(
            offsets,
            Buffer::from_vec(copied),
            spans.nulls,
        ))),
        DataType::Decimal128(precision, scale) => {
            let mut values = Vec::with_capacity(rows);
            let mut rest = copied.as_slice();
            for length in offsets.lengths() {
                let (bytes, others) = rest.split_at_checked(length).unwrap_or_default();
                let value = big_endian(bytes).ok_or_else(|| {
                    VectorError::Descriptor(format!("a decimal of more than 16 bytes: {bytes:x?}"))
                })?;
                values.push(value);
                rest = others;
            }
            decimals(values, spans.nulls, *precision, *scale)
        }
        other => Err(VectorError::kind(2, other)),
    }
}

/// Two's complement as a number, unless it takes more than 16 bytes. Files of other writers may have
/// more that only repeat the sign.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let (signs, bytes) = bytes.split_at(bytes.len().saturating_sub(size_of::<i128>()));
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let (start, sign) = if negative { (-1, 0xff) } else { (0, 0) };
    let shifted = bytes.iter();
    let value = shifted.fold(start, |value: i128, byte| (value << 8) | i128::from(*byte));
    signs.iter().all(|byte| *byte == sign).then_some(value)
}
