//! Booleans: a byte each in rows, a bit each in Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};

use super::Shared;
use crate::bits::{Bits, Validity};
use crate::error::RowError;
use crate::source::Source;

/// A column of booleans.
#[derive(Debug, Default)]
pub(crate) struct BooleanColumn {
    values: Bits,
    pub(super) validity: Validity,
}

impl BooleanColumn {
    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.values.begin(rows);
    }

    pub(super) fn append<S: Source>(&mut self, source: S, _: &mut Shared) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.bools(&mut self.values);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        Ok(Arc::new(BooleanArray::new(
            self.values.finish(),
            self.validity.finish(),
        )))
    }
}
