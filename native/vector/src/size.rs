//! How many bytes rows have.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::DataType;

/// The bytes of the rows of `array` alone, without what else its buffers hold.
pub(crate) fn row_bytes(array: &dyn Array) -> usize {
    let rows = array.len();
    let nulls = array.nulls().map_or(0, |_| rows.div_ceil(8));
    nulls
        + match array.data_type() {
            DataType::Boolean => rows.div_ceil(8),
            DataType::Binary => {
                let offsets = array.as_binary::<i32>().value_offsets();
                let (first, last) = ends(offsets);
                size_of_val(offsets) + last - first
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let (first, last) = ends(list.value_offsets());
                let elements = list.values().slice(first, last - first);
                size_of_val(list.value_offsets()) + row_bytes(&elements)
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let (first, last) = ends(map.value_offsets());
                let entries = map.entries().slice(first, last - first);
                size_of_val(map.value_offsets()) + row_bytes(&entries)
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns().iter();
                columns.map(|column| row_bytes(column)).sum()
            }
            other => rows * other.primitive_width().unwrap_or(0),
        }
}

/// The first and the last of offsets.
fn ends(offsets: &[i32]) -> (usize, usize) {
    let end = |offset: Option<&i32>| offset.map_or(0, |end| usize::try_from(*end).unwrap_or(0));
    (end(offsets.first()), end(offsets.last()))
}

/// The bytes of the values that `indices` name in a dictionary of these entries, which has them all.
pub(crate) fn decoded_bytes(entries: &ArrayRef, indices: &UInt32Array) -> usize {
    let Some(entries) = entries.as_binary_opt::<i32>() else {
        let width = entries.data_type().primitive_width().unwrap_or(1);
        return indices.len() * width;
    };
    let ends = entries.value_offsets();
    let lengths = indices.iter().flatten().map(|index| {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let (start, end) = (ends.get(index), ends.get(index.saturating_add(1)));
        let length = end.zip(start).map(|(end, start)| end - start);
        usize::try_from(length.unwrap_or(0)).unwrap_or(0)
    });
    lengths.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{BinaryArray, BooleanArray, Int64Array, ListArray, StructArray};
    use arrow_schema::Field;
    use std::sync::Arc;

    #[test]
    fn rows_count_without_what_lies_beside_them() {
        let longs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let texts: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"abc", b"", b"defgh", b"i"]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, None, None]));
        let list = [Some(vec![Some(1)]), None, Some(vec![Some(2), None]), None];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list));
        let both: ArrayRef = Arc::new(StructArray::from(vec![
            (
                Arc::new(Field::new("l", DataType::Int64, true)),
                Arc::clone(&longs),
            ),
            (
                Arc::new(Field::new("t", DataType::Binary, true)),
                Arc::clone(&texts),
            ),
        ]));
        for (array, all, middle) in [
            (&longs, 32, 16),
            (&texts, 20 + 9, 12 + 5),
            (&flags, 2, 2),
            // Offsets, nulls, then elements with nulls.
            (&lists, 20 + 1 + 12 + 1, 12 + 1 + 8 + 1),
            (&both, 32 + 29, 16 + 17),
        ] {
            assert_eq!(row_bytes(array), all, "{array:?}");
            assert_eq!(row_bytes(&array.slice(1, 2)), middle, "{array:?}");
        }
    }

    #[test]
    fn decoded_values_are_as_many_as_the_indices() {
        let texts: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"abc", b"", b"defgh"]));
        let indices = UInt32Array::from(vec![Some(2), None, Some(2), Some(0), Some(1)]);
        assert_eq!(decoded_bytes(&texts, &indices), 13);
        let longs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        assert_eq!(decoded_bytes(&longs, &indices), 40);
    }
}
