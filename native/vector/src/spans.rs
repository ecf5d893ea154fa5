//! Values of variable length: where they lie, and bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::VectorError;
use crate::descriptor::Numbers;
use crate::values::{clear_nulls, decimals, nulls_at, numbers_at};

/// Where each row's bytes or elements lie.
pub(crate) struct Spans {
    pub(crate) nulls: Option<NullBuffer>,
    offsets: Vec<i32>,
    lengths: Vec<i32>,
}

impl Spans {
    /// # Safety
    ///
    /// At the addresses there must be nulls, offsets and lengths of `rows` rows.
    pub(crate) unsafe fn read(rows: usize, numbers: &mut Numbers<'_>) -> Result<Self, VectorError> {
        // SAFETY: as the caller vouches.
        unsafe {
            let nulls = nulls_at(numbers.next()?, rows);
            let offsets = numbers_at::<i32>(numbers.next()?, rows);
            let mut lengths = numbers_at::<i32>(numbers.next()?, rows);
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
}

/// # Safety
///
/// At the addresses there must be nulls, offsets and lengths of `rows` rows, and their bytes.
pub(crate) unsafe fn bytes(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    let spans = unsafe { Spans::read(rows, numbers) }?;
    let at = numbers.next()? as *const u8;
    match data_type {
        DataType::Binary => {
            let (offsets, total) = spans.arrow_offsets()?;
            let mut copied = Vec::with_capacity(total);
            for (start, length) in spans.runs() {
                // SAFETY: the caller vouches for the bytes of every row.
                copied.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(at.add(start), length)
                });
            }
            Ok(Arc::new(BinaryArray::new(
                offsets,
                Buffer::from_vec(copied),
                spans.nulls,
            )))
        }
        DataType::Decimal128(precision, scale) => {
            let mut values = Vec::with_capacity(rows);
            for (start, length) in spans.iter() {
                let (Ok(start), Ok(length @ 0..=16)) =
                    (usize::try_from(start), usize::try_from(length))
                else {
                    let detail = format!("a decimal of {length} bytes");
                    return Err(VectorError::Descriptor(detail));
                };
                // SAFETY: the caller vouches for the bytes of every row.
                values.push(big_endian(unsafe {
                    std::slice::from_raw_parts(at.wrapping_add(start), length)
                }));
            }
            decimals(values, spans.nulls, *precision, *scale)
        }
        other => Err(VectorError::kind(2, other)),
    }
}

/// Up to 16 bytes, two's complement, as a number.
fn big_endian(bytes: &[u8]) -> i128 {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let start = if negative { -1 } else { 0 };
    let shifted = bytes.iter();
    shifted.fold(start, |value: i128, byte| (value << 8) | i128::from(*byte))
}
