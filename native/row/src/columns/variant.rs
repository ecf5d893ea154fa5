//! Variants: a length, a value and its metadata in rows, a struct of two binaries in Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};

use super::Shared;
use super::binary::Blobs;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::{Span, Text};
use crate::schema::variant_fields;
use crate::source::Source;

/// Bytes of the value's length.
const HEADER: usize = 4;

/// A column of variants.
#[derive(Debug, Default)]
pub(crate) struct VariantColumn {
    values: Blobs,
    metadata: Blobs,
    pub(super) validity: Validity,
    parts: Vec<(Span, Span)>,
}

impl VariantColumn {
    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.values.begin(rows);
        self.metadata.begin(rows);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut shared.spans)?;
        self.parts.clear();
        for span in &shared.spans {
            // SAFETY: the source found each span inside readable memory.
            self.parts.push(unsafe { split(*span) }?);
        }
        // SAFETY: both parts lie inside their span.
        unsafe {
            self.values
                .append(self.parts.iter().map(|parts| Text::from(parts.0)), shared)?;
            self.metadata
                .append(self.parts.iter().map(|parts| Text::from(parts.1)), shared)
        }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let nulls = self.validity.finish();
        let values = self.values.finish(nulls.clone())?;
        let metadata = self.metadata.finish(nulls.clone())?;
        let members: Vec<ArrayRef> = vec![Arc::new(values), Arc::new(metadata)];
        Ok(Arc::new(StructArray::try_new(
            variant_fields(),
            members,
            nulls,
        )?))
    }
}

/// The value and the metadata of a variant; both are empty for a null one.
///
/// # Safety
///
/// The span must be readable.
#[inline(always)]
unsafe fn split(span: Span) -> Result<(Span, Span), RowError> {
    if span.address.is_null() {
        return Ok((Span::NULL, Span::NULL));
    }
    if span.len < HEADER {
        return Err(RowError::malformed(format!(
            "a variant has only {} bytes",
            span.len
        )));
    }
    // SAFETY: the span is readable and holds the header.
    let len = unsafe { span.read::<u32>(0) } as usize;
    let left = span.len - HEADER;
    if len > left {
        let detail = format!("a variant's value has {len} bytes, but {left} are left");
        return Err(RowError::malformed(detail));
    }
    let value = Span {
        address: span.address.wrapping_add(HEADER),
        len,
    };
    let metadata = Span {
        address: value.address.wrapping_add(len),
        len: left - len,
    };
    Ok((value, metadata))
}
