//! Values of 1, 2, 4 or 8 bytes that Arrow stores with the same bits.

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;

use super::Shared;
use crate::bits::Validity;
use crate::error::RowError;
use crate::source::Source;

/// A column of a primitive Arrow type.
#[derive(Debug)]
pub(crate) struct FixedColumn<A: ArrowPrimitiveType> {
    data_type: DataType,
    values: Vec<A::Native>,
    pub(super) validity: Validity,
}

impl<A: ArrowPrimitiveType> FixedColumn<A> {
    /// `data_type` must be one of A's, with any time zone.
    pub(super) fn new(data_type: DataType) -> Self {
        Self {
            data_type,
            values: Vec::new(),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.values.clear();
        self.values.reserve_exact(rows);
    }

    pub(super) fn append<S: Source>(&mut self, source: S, _: &mut Shared) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.copy(&mut self.values);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let values = std::mem::take(&mut self.values).into();
        let array = PrimitiveArray::<A>::try_new(values, self.validity.finish())?;
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }
}
