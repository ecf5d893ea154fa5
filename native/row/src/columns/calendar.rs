//! Calendar intervals: 16 bytes in rows, a struct of three numbers in Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StructArray};

use super::Shared;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Span;
use crate::schema::calendar_fields;
use crate::source::Source;

/// Months and days are 4 bytes each, microseconds 8.
const BYTES: usize = 16;

/// What a null interval reads as.
static ZERO: [u8; BYTES] = [0; BYTES];

/// A column of calendar intervals.
#[derive(Debug, Default)]
pub(crate) struct CalendarColumn {
    months: Vec<i32>,
    days: Vec<i32>,
    microseconds: Vec<i64>,
    pub(super) validity: Validity,
}

impl CalendarColumn {
    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.months.clear();
        self.days.clear();
        self.microseconds.clear();
        self.months.reserve_exact(rows);
        self.days.reserve_exact(rows);
        self.microseconds.reserve_exact(rows);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut shared.spans)?;
        for span in &mut shared.spans {
            if span.address.is_null() {
                *span = Span {
                    address: ZERO.as_ptr(),
                    len: BYTES,
                };
            }
            if span.len != BYTES {
                let detail = format!("a calendar interval has {} bytes, not {BYTES}", span.len);
                return Err(RowError::malformed(detail));
            }
        }
        let spans = shared.spans.iter();
        // SAFETY: each span is readable, from the source or static, and has 16 bytes.
        unsafe {
            self.months
                .extend(spans.clone().map(|span| span.read::<i32>(0)));
            self.days
                .extend(spans.clone().map(|span| span.read::<i32>(4)));
            self.microseconds
                .extend(spans.map(|span| span.read::<i64>(8)));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let nulls = self.validity.finish();
        let months = std::mem::take(&mut self.months).into();
        let days = std::mem::take(&mut self.days).into();
        let microseconds = std::mem::take(&mut self.microseconds).into();
        let members: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::try_new(months, nulls.clone())?),
            Arc::new(Int32Array::try_new(days, nulls.clone())?),
            Arc::new(Int64Array::try_new(microseconds, nulls.clone())?),
        ];
        Ok(Arc::new(StructArray::try_new(
            calendar_fields(),
            members,
            nulls,
        )?))
    }
}
