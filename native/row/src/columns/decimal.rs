//! Decimals: a long up to 18 digits, else the shortest big-endian bytes; 16 bytes each in Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array};
use arrow_schema::DataType;

use super::Shared;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Span;
use crate::source::Source;

/// The values of a decimal column of any precision.
#[derive(Debug)]
struct Decimals {
    data_type: DataType,
    values: Vec<i128>,
}

impl Decimals {
    fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            values: Vec::new(),
        }
    }

    fn begin(&mut self, rows: usize) {
        self.values.clear();
        self.values.reserve_exact(rows);
    }

    fn finish(&mut self, validity: &mut Validity) -> Result<ArrayRef, RowError> {
        let values = std::mem::take(&mut self.values).into();
        let array = Decimal128Array::try_new(values, validity.finish())?;
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }
}

/// A column of decimals with at most 18 digits.
#[derive(Debug)]
pub(crate) struct LongDecimalColumn {
    decimals: Decimals,
    pub(super) validity: Validity,
}

impl LongDecimalColumn {
    pub(super) fn new(data_type: DataType) -> Self {
        Self {
            decimals: Decimals::new(data_type),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.decimals.begin(rows);
    }

    pub(super) fn append<S: Source>(&mut self, source: S, _: &mut Shared) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.widen(&mut self.decimals.values);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        self.decimals.finish(&mut self.validity)
    }
}

/// A column of decimals with more than 18 digits.
#[derive(Debug)]
pub(crate) struct WideDecimalColumn {
    decimals: Decimals,
    pub(super) validity: Validity,
}

impl WideDecimalColumn {
    pub(super) fn new(data_type: DataType) -> Self {
        Self {
            decimals: Decimals::new(data_type),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.decimals.begin(rows);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut shared.spans)?;
        let sized = |span: &Span| (1..=16).contains(&span.len) || span.address.is_null();
        if let Some(span) = shared.spans.iter().find(|span| !sized(span)) {
            let detail = format!("a decimal has {} bytes, not 1 to 16", span.len);
            return Err(RowError::malformed(detail));
        }
        // SAFETY: the source found each span inside readable memory, and none is above 16 bytes.
        let value = |span: &Span| unsafe { from_big_endian(*span) };
        self.decimals.values.extend(shared.spans.iter().map(value));
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        self.decimals.finish(&mut self.validity)
    }
}

/// Extends a two's complement number to 16 bytes; an empty span is 0.
///
/// # Safety
///
/// The span must be readable and at most 16 bytes long.
#[inline(always)]
unsafe fn from_big_endian(span: Span) -> i128 {
    let mut bytes = [0_u8; 16];
    // SAFETY: the caller vouches for the span; its length fits the 16 bytes.
    unsafe { std::ptr::copy_nonoverlapping(span.address, bytes.as_mut_ptr(), span.len) };
    // The number sits in the high bytes: an arithmetic shift moves it down and extends its sign.
    // Shifting twice keeps an empty span's 128 bits legal.
    let unused = (16 - span.len) * 4;
    i128::from_be_bytes(bytes) >> unused >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> i128 {
        // SAFETY: a slice of at most 16 bytes.
        unsafe {
            from_big_endian(Span {
                address: bytes.as_ptr(),
                len: bytes.len(),
            })
        }
    }

    #[test]
    fn extends_the_sign() {
        assert_eq!(decode(&[]), 0);
        assert_eq!(decode(&[0x7f]), 127);
        assert_eq!(decode(&[0x80]), -128);
        assert_eq!(decode(&[0x00, 0x80]), 128);
        assert_eq!(decode(&[0xff, 0x7f]), -129);
        assert_eq!(decode(&i128::MAX.to_be_bytes()), i128::MAX);
        assert_eq!(decode(&i128::MIN.to_be_bytes()), i128::MIN);
    }
}
