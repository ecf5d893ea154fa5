//! How many bytes rows would take as UnsafeRows.
//!
//! Spark's adaptive execution decides by the size of rows (the metric `dataSize`), also where rows
//! never exist. The layout is in the crate's documentation; what Spark's writers reserve for nulls is
//! from `UnsafeRowWriter` and `UnsafeArrayWriter`.

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, RecordBatch};

use crate::schema::{SparkSchema, SparkType};

const WORD: u64 = 8;
/// Decimals of more than 18 digits and calendar intervals reserve this much in a row, also for nulls.
const WIDE: u64 = 16;
const MAX_LONG_DIGITS: u8 = 18;

/// The bytes of all rows of `batch` as Spark would write them. The batch must have the columns of
/// `schema`; a column of another type counts with its slots alone.
pub fn unsafe_row_bytes(schema: &SparkSchema, batch: &RecordBatch) -> u64 {
    let rows = wide(batch.num_rows());
    let fields = schema.fields().iter().zip(batch.columns());
    let variable = fields.map(|(field, column)| column_bytes(&field.data_type, column));
    rows * row_bytes(schema.fields().len()) + variable.sum::<u64>()
}

/// The null bits and slots of a row or struct.
fn row_bytes(fields: usize) -> u64 {
    bitmap_bytes(fields) + WORD * wide(fields)
}

fn bitmap_bytes(bits: usize) -> u64 {
    WORD * wide(bits).div_ceil(64)
}

/// What a top-level column adds to all rows beside its slots.
fn column_bytes(data_type: &SparkType, column: &ArrayRef) -> u64 {
    match data_type {
        SparkType::Decimal { precision, .. } if *precision > MAX_LONG_DIGITS => {
            WIDE * wide(column.len())
        }
        SparkType::CalendarInterval => WIDE * wide(column.len()),
        other => values_bytes(other, column, 0, column.len()),
    }
}

/// What the values of some rows of a column add beside their slots, if nulls add nothing.
fn values_bytes(data_type: &SparkType, column: &ArrayRef, start: usize, end: usize) -> u64 {
    if !has_variable_part(data_type) {
        return 0;
    }
    let valid = (start..end).filter(|row| column.is_valid(*row));
    valid.map(|row| value_bytes(data_type, column, row)).sum()
}

fn has_variable_part(data_type: &SparkType) -> bool {
    match data_type {
        SparkType::Decimal { precision, .. } => *precision > MAX_LONG_DIGITS,
        SparkType::String
        | SparkType::Binary
        | SparkType::CalendarInterval
        | SparkType::Variant
        | SparkType::Struct(_)
        | SparkType::Array(_)
        | SparkType::Map(..) => true,
        _ => false,
    }
}

/// What one value adds beside its slot.
fn value_bytes(data_type: &SparkType, column: &ArrayRef, row: usize) -> u64 {
    match data_type {
        SparkType::Decimal { .. } => column
            .as_primitive_opt::<Decimal128Type>()
            .map_or(0, |values| padded(significant_bytes(values.value(row)))),
        SparkType::String | SparkType::Binary => padded(binary_length(column, row)),
        SparkType::CalendarInterval => WIDE,
        SparkType::Variant => {
            let parts = column
                .as_struct_opt()
                .map_or(&[][..], |parts| parts.columns());
            let bytes: u64 = parts.iter().map(|part| binary_length(part, row)).sum();
            // The length of the value comes first.
            padded(wide(size_of::<u32>()) + bytes)
        }
        SparkType::Struct(fields) => {
            let columns = column
                .as_struct_opt()
                .map_or(&[][..], |parts| parts.columns());
            let nested = fields
                .iter()
                .zip(columns)
                .map(|(field, column)| match &field.data_type {
                    SparkType::Decimal { precision, .. } if *precision > MAX_LONG_DIGITS => WIDE,
                    SparkType::CalendarInterval => WIDE,
                    other => values_bytes(other, column, row, row + 1),
                });
            row_bytes(fields.len()) + nested.sum::<u64>()
        }
        SparkType::Array(element) => column.as_list_opt::<i32>().map_or(0, |lists| {
            let (start, end) = span(lists.value_offsets(), row);
            array_bytes(element, lists.values(), start, end)
        }),
        SparkType::Map(key, value) => column.as_map_opt().map_or(0, |maps| {
            let (start, end) = span(maps.value_offsets(), row);
            let keys = array_bytes(key, maps.keys(), start, end);
            WORD + keys + array_bytes(value, maps.values(), start, end)
        }),
        _ => 0,
    }
}

/// An array of the elements from `start` to `end`: their number, null bits, slots and what they add.
fn array_bytes(element: &SparkType, values: &ArrayRef, start: usize, end: usize) -> u64 {
    let count = end - start;
    let slots = padded(wide(count * element.element_width()));
    WORD + bitmap_bytes(count) + slots + values_bytes(element, values, start, end)
}

fn span(offsets: &[i32], row: usize) -> (usize, usize) {
    match offsets.get(row..row + 2) {
        Some([start, end]) => (
            usize::try_from(*start).unwrap_or(0),
            usize::try_from(*end).unwrap_or(0),
        ),
        _ => (0, 0),
    }
}

fn binary_length(column: &ArrayRef, row: usize) -> u64 {
    let bytes = column.as_binary_opt::<i32>();
    bytes.map_or(0, |bytes| u64::from(bytes.value_length(row).unsigned_abs()))
}

/// The bytes of the shortest two's complement form, which has a sign bit.
pub(crate) fn significant_bytes(value: i128) -> u64 {
    let same = if value < 0 {
        value.leading_ones()
    } else {
        value.leading_zeros()
    };
    u64::from((i128::BITS - same) / 8 + 1)
}

fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(WORD)
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_form_has_a_sign_bit() {
        for (value, bytes) in [(0, 1), (127, 1), (128, 2), (-1, 1), (-128, 1), (-129, 2)] {
            assert_eq!(significant_bytes(value), bytes, "{value}");
        }
        assert_eq!(significant_bytes(i128::MIN), 16);
    }
}
