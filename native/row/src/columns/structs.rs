//! Structs: rows inside rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};

use super::offsets::check_budget;
use super::{RowColumns, Shared};
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Span;
use crate::schema::SparkField;
use crate::source::Source;

/// A column of structs.
#[derive(Debug)]
pub(crate) struct StructColumn {
    members: RowColumns,
    /// A row of nulls that members read where the struct is null, so that they need no branch.
    null_row: Box<[u64]>,
    /// Bytes of all structs so far.
    bytes: usize,
    rows: Vec<Span>,
    pub(super) validity: Validity,
}

impl StructColumn {
    pub(super) fn new(fields: &[SparkField]) -> Self {
        let null_words = fields.len().div_ceil(64);
        let mut null_row = vec![0; null_words + fields.len()];
        null_row
            .iter_mut()
            .take(null_words)
            .for_each(|word| *word = u64::MAX);
        Self {
            members: RowColumns::new(fields),
            null_row: null_row.into(),
            bytes: 0,
            rows: Vec::new(),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.bytes = 0;
        self.members.begin(rows);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut self.rows)?;
        self.bytes = self
            .rows
            .iter()
            .fold(self.bytes, |sum, row| sum.saturating_add(row.len));
        check_budget(self.bytes, shared)?;
        if self.validity.null_count() > 0 {
            let len = size_of_val(&*self.null_row);
            let null_row = Span {
                address: self.null_row.as_ptr().cast(),
                len,
            };
            for row in self.rows.iter_mut().filter(|row| row.address.is_null()) {
                *row = null_row;
            }
        }
        // SAFETY: the source found each span inside readable memory; `null_row` outlives the call.
        unsafe { self.members.append(&self.rows, shared) }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let len = self.validity.len();
        let nulls = self.validity.finish();
        let fields = self.members.fields().clone();
        let members = self.members.finish()?;
        Ok(Arc::new(StructArray::try_new_with_length(
            fields, members, nulls, len,
        )?))
    }
}
