//! One column, with what is nested in it.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, NullArray, StructArray, UInt32Array, new_null_array,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};
use arrow_select::take::take;

use crate::VectorError;
use crate::collected::Collected;
use crate::descriptor::Numbers;
use crate::exported;
use crate::size::{decoded_bytes, row_bytes};
use crate::spans::{Spans, bytes};
use crate::values::{clear_nulls, values};

/// Imports a column of `rows` rows.
///
/// # Safety
///
/// At every place among the numbers there must be what they say, unchanged until this returns.
pub(crate) unsafe fn import(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    let kind = numbers.next()?;
    // SAFETY: as the caller vouches.
    unsafe {
        match (kind, data_type) {
            (0, DataType::Null) => Ok(Arc::new(NullArray::new(rows))),
            (0, _) => Ok(new_null_array(data_type, rows)),
            (1, _) => values(data_type, rows, numbers),
            (2, _) => bytes(data_type, rows, numbers),
            (3, DataType::List(element)) => list(element, rows, numbers),
            (3, DataType::Map(entries, _)) => map(entries, rows, numbers),
            (4, DataType::Struct(fields)) => structs(fields, rows, numbers),
            (5, _) => dictionary(data_type, rows, numbers),
            (6, _) => arrow(data_type, rows, numbers),
            (7, _) => {
                let column = Collected::Taken.column(data_type, rows, numbers)?;
                numbers.charge(row_bytes(&column))?;
                Ok(column)
            }
            _ => Err(VectorError::kind(kind, data_type)),
        }
    }
}

/// The elements that `spans` refer to, in their order.
fn spanned(
    elements: ArrayRef,
    spans: &Spans,
    total: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    let runs = spans.runs();
    let inside = |(start, length): &(usize, usize)| start + length <= elements.len();
    if !runs.iter().all(inside) {
        let detail = format!("a list past the end of its {} elements", elements.len());
        return Err(VectorError::Descriptor(detail));
    }
    match runs.as_slice() {
        [] => Ok(elements.slice(0, 0)),
        [(0, length)] if *length == elements.len() => Ok(elements),
        runs => copied(&elements, runs, total, numbers),
    }
}

/// Where the elements of each row lie among those that are described next, and how many these are.
///
/// # Safety
///
/// As for [`import`].
unsafe fn spans_of_elements(
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<(Spans, usize), VectorError> {
    // SAFETY: as the caller vouches.
    let mut spans = unsafe { Spans::read(rows, numbers) }?;
    spans.begin_at(numbers.next_count()?)?;
    Ok((spans, numbers.next_count()?))
}

/// A copy of `runs`, each a start and a length, of `total` rows in all.
fn copied(
    array: &ArrayRef,
    runs: &[(usize, usize)],
    total: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    let mut indices = Vec::with_capacity(total);
    for (start, length) in runs {
        numbers.charge(row_bytes(&array.slice(*start, *length)))?;
        let places = (*start..start + length).map(u32::try_from);
        indices.extend(places.map(|place| place.unwrap_or(u32::MAX)));
    }
    taken(array, &UInt32Array::from(indices))
}

/// The rows of `array` that `indices` name.
fn taken(array: &ArrayRef, indices: &UInt32Array) -> Result<ArrayRef, VectorError> {
    take(array, indices, None).map_err(|error| match error {
        ArrowError::OffsetOverflowError(bytes) => VectorError::TooLarge {
            rows: indices.len(),
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        },
        other => other.into(),
    })
}

/// # Safety
///
/// As for [`import`].
unsafe fn list(
    element: &FieldRef,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    unsafe {
        let (spans, count) = spans_of_elements(rows, numbers)?;
        let elements = import(element.data_type(), count, numbers)?;
        let (offsets, total) = spans.arrow_offsets()?;
        let elements = spanned(elements, &spans, total, numbers)?;
        let element = Arc::clone(element);
        Ok(Arc::new(ListArray::try_new(
            element,
            offsets,
            elements,
            spans.nulls,
        )?))
    }
}

/// # Safety
///
/// As for [`import`].
unsafe fn map(
    entries: &FieldRef,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(VectorError::kind(3, entries.data_type()));
    };
    // SAFETY: as the caller vouches.
    unsafe {
        let (spans, count) = spans_of_elements(rows, numbers)?;
        let (offsets, total) = spans.arrow_offsets()?;
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let column = import(field.data_type(), count, numbers)?;
            columns.push(spanned(column, &spans, total, numbers)?);
        }
        let structs = StructArray::try_new(fields.clone(), columns, None)?;
        let entries = Arc::clone(entries);
        let map = MapArray::try_new(entries, offsets, structs, spans.nulls, false)?;
        Ok(Arc::new(map))
    }
}

/// # Safety
///
/// As for [`import`].
unsafe fn structs(
    fields: &Fields,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    let nulls = unsafe { numbers.next_nulls(rows) }?;
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        // SAFETY: as the caller vouches.
        columns.push(unsafe { import(field.data_type(), rows, numbers) }?);
    }
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(rows, nulls)));
    }
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        nulls,
    )?))
}

/// # Safety
///
/// As for [`import`].
unsafe fn dictionary(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    unsafe {
        let nulls = numbers.next_nulls(rows)?;
        let mut indices = numbers.next_values::<u32>(rows)?;
        clear_nulls(&mut indices, nulls.as_ref());
        let count = numbers.next_count()?;
        // Looking them up copies them, so that nothing of theirs goes on.
        let entries = Collected::Borrowed.column(data_type, count, numbers)?;
        let valid = |index: &u32| usize::try_from(*index).is_ok_and(|index| index < count);
        // Indices of nulls are 0, which an empty dictionary does not have either.
        if !indices.iter().all(valid) {
            let detail = format!("an index past the end of a dictionary of {count} entries");
            return Err(VectorError::Descriptor(detail));
        }
        let indices = UInt32Array::new(ScalarBuffer::from(indices), nulls);
        numbers.charge(decoded_bytes(&entries, &indices))?;
        taken(&entries, &indices)
    }
}

/// # Safety
///
/// As for [`import`].
unsafe fn arrow(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: the caller vouches for an exported array.
    let array = unsafe { exported::import(numbers.next()?, data_type) }?;
    let first = numbers.next_count()?;
    match first.checked_add(rows) {
        Some(end) if first == 0 && end == array.len() => {
            numbers.charge(row_bytes(&array))?;
            Ok(array)
        }
        // A part is copied: it would keep all of the array in memory.
        Some(end) if end <= array.len() => copied(&array, &[(first, rows)], rows, numbers),
        _ => {
            let detail = format!("rows {first} + {rows} of an array of {}", array.len());
            Err(VectorError::Descriptor(detail))
        }
    }
}
