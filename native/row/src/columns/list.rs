//! Arrays.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_schema::FieldRef;

use super::offsets::{Offsets, check_budget};
use super::{Column, Shared};
use crate::array::ArraySpan;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Span;
use crate::schema::{SparkType, arrow_field};
use crate::source::{Elements, Source};

/// A column of arrays.
#[derive(Debug)]
pub(crate) struct ListColumn {
    field: FieldRef,
    width: usize,
    offsets: Offsets,
    elements: Box<Column>,
    /// Bytes of all arrays so far.
    bytes: usize,
    spans: Vec<Span>,
    arrays: Vec<ArraySpan>,
    pub(super) validity: Validity,
}

impl ListColumn {
    pub(super) fn new(element: &SparkType) -> Self {
        Self {
            field: arrow_field("element", element, true),
            width: element.element_width(),
            offsets: Offsets::default(),
            elements: Box::new(Column::new(element)),
            bytes: 0,
            spans: Vec::new(),
            arrays: Vec::new(),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.bytes = 0;
        let likely = self.offsets.begin(rows);
        self.elements.begin(likely);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut self.spans)?;
        self.bytes = self
            .spans
            .iter()
            .fold(self.bytes, |sum, span| sum.saturating_add(span.len));
        check_budget(self.bytes, shared)?;
        self.arrays.clear();
        for span in &self.spans {
            self.arrays.push(if span.address.is_null() {
                ArraySpan::EMPTY
            } else {
                // SAFETY: the source found the span inside readable memory.
                unsafe { ArraySpan::parse(*span, self.width) }?
            });
        }
        self.offsets
            .push(self.arrays.iter().map(|array| array.count()), shared)?;
        // SAFETY: the arrays were parsed just now, with the element type's width.
        let elements = unsafe { Elements::new(&self.arrays) };
        self.elements
            .append(elements, shared)
            .map_err(|error| error.within("element"))
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let offsets = self.offsets.finish();
        let elements = self.elements.finish()?;
        let field = Arc::clone(&self.field);
        Ok(Arc::new(ListArray::try_new(
            field,
            offsets,
            elements,
            self.validity.finish(),
        )?))
    }
}
