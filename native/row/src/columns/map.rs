//! Maps: an array of keys and an array of values.

use std::sync::Arc;

use arrow_array::{ArrayRef, MapArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::offsets::{Offsets, check_budget};
use super::{Column, Shared};
use crate::array::ArraySpan;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Span;
use crate::schema::{SparkType, entry_fields};
use crate::source::{Elements, Source};

/// Bytes of the key array's size.
const HEADER: usize = 8;

/// A column of maps.
#[derive(Debug)]
pub(crate) struct MapColumn {
    entries: FieldRef,
    entry_fields: Fields,
    key_width: usize,
    value_width: usize,
    offsets: Offsets,
    keys: Column,
    values: Column,
    /// Bytes of all maps so far.
    bytes: usize,
    spans: Vec<Span>,
    key_arrays: Vec<ArraySpan>,
    value_arrays: Vec<ArraySpan>,
    pub(super) validity: Validity,
}

impl MapColumn {
    pub(super) fn new(key: &SparkType, value: &SparkType) -> Self {
        let entry_fields = entry_fields(key, value);
        let entries = Field::new("entries", DataType::Struct(entry_fields.clone()), false);
        Self {
            entries: Arc::new(entries),
            entry_fields,
            key_width: key.element_width(),
            value_width: value.element_width(),
            offsets: Offsets::default(),
            keys: Column::new(key),
            values: Column::new(value),
            bytes: 0,
            spans: Vec::new(),
            key_arrays: Vec::new(),
            value_arrays: Vec::new(),
            validity: Validity::default(),
        }
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.bytes = 0;
        let likely = self.offsets.begin(rows);
        self.keys.begin(likely);
        self.values.begin(likely);
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
        self.key_arrays.clear();
        self.value_arrays.clear();
        for span in &self.spans {
            // SAFETY: the source found each span inside readable memory.
            let (keys, values) = unsafe { self.split(*span) }?;
            self.key_arrays.push(keys);
            self.value_arrays.push(values);
        }
        self.offsets
            .push(self.key_arrays.iter().map(|array| array.count()), shared)?;
        // SAFETY: the arrays were parsed just now, with the key and value types' widths.
        let (keys, values) = unsafe {
            (
                Elements::new(&self.key_arrays),
                Elements::new(&self.value_arrays),
            )
        };
        self.keys
            .append(keys, shared)
            .map_err(|error| error.within("key"))?;
        if self.keys.null_count() > 0 {
            return Err(RowError::malformed("a map key is null").within("key"));
        }
        self.values
            .append(values, shared)
            .map_err(|error| error.within("value"))
    }

    /// The key and the value array of a map; both are empty for a null one.
    ///
    /// # Safety
    ///
    /// The span must be readable.
    unsafe fn split(&self, span: Span) -> Result<(ArraySpan, ArraySpan), RowError> {
        if span.address.is_null() {
            return Ok((ArraySpan::EMPTY, ArraySpan::EMPTY));
        }
        let Some(left) = span.len.checked_sub(HEADER) else {
            return Err(RowError::malformed(format!(
                "a map has only {} bytes",
                span.len
            )));
        };
        // SAFETY: the span is readable and holds the header.
        let size = unsafe { span.read::<u64>(0) };
        let Some(len) = usize::try_from(size).ok().filter(|len| *len <= left) else {
            let detail = format!("a map's keys have {size} bytes, but {left} are left");
            return Err(RowError::malformed(detail));
        };
        let keys = Span {
            address: span.address.wrapping_add(HEADER),
            len,
        };
        let values = Span {
            address: keys.address.wrapping_add(len),
            len: left - len,
        };
        // SAFETY: both lie inside the span.
        let keys = unsafe { ArraySpan::parse(keys, self.key_width) };
        let keys = keys.map_err(|error| error.within("key"))?;
        // SAFETY: as above.
        let values = unsafe { ArraySpan::parse(values, self.value_width) };
        let values = values.map_err(|error| error.within("value"))?;
        if keys.count() != values.count() {
            let (keys, values) = (keys.count(), values.count());
            return Err(RowError::malformed(format!(
                "a map has {keys} keys, {values} values"
            )));
        }
        Ok((keys, values))
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        let offsets = self.offsets.finish();
        let members = vec![self.keys.finish()?, self.values.finish()?];
        let entries = StructArray::try_new(self.entry_fields.clone(), members, None)?;
        let nulls = self.validity.finish();
        let field = Arc::clone(&self.entries);
        Ok(Arc::new(MapArray::try_new(
            field, offsets, entries, nulls, false,
        )?))
    }
}
