//! Batches described by hand, as the JVM describes them.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use comet_vector::{VectorError, VectorImporter, export, release};

fn schema(data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("c", data_type, true)]))
}

fn address<T>(values: &[T]) -> i64 {
    values.as_ptr() as i64
}

/// Imports a batch of one column.
fn import(data_type: DataType, rows: i64, column: &[i64]) -> Result<RecordBatch, VectorError> {
    let mut numbers = vec![0, rows, 0];
    numbers.extend_from_slice(column);
    *numbers.first_mut().unwrap() = i64::try_from(numbers.len()).unwrap();
    let importer = VectorImporter::new(&schema(data_type), false);
    // SAFETY: the callers describe memory that outlives the call.
    unsafe { importer.import(address(&numbers)) }
}

#[test]
fn values_keep_their_bits_and_nulls_have_none() {
    let (values, nulls) = ([1_i32, 0x5555, -3], [0_u8, 1, 0]);
    let batch = import(DataType::Int32, 3, &[1, address(&nulls), address(&values)]).unwrap();
    let column = batch.column(0).as_primitive::<Int32Type>();
    assert_eq!(column, &Int32Array::from(vec![Some(1), None, Some(-3)]));
    assert_eq!(column.values().as_ref(), [1, 0, -3]);
}

#[test]
fn decimals_of_each_width() {
    for (precision, numbers) in [
        (9, address(&[-5_i32, i32::MAX])),
        (18, address(&[-5_i64, i64::from(i32::MAX)])),
    ] {
        let batch = import(DataType::Decimal128(precision, 2), 2, &[1, 0, numbers]).unwrap();
        let column = batch.column(0).as_primitive::<Decimal128Type>();
        assert_eq!(column.values().as_ref(), [-5, i128::from(i32::MAX)]);
    }
    let bytes = [0xff_u8, 0x7f, 0x01];
    let (offsets, lengths) = ([0_i32, 1], [1_i32, 2]);
    let column = [2, 0, address(&offsets), address(&lengths), address(&bytes)];
    let batch = import(DataType::Decimal128(38, 0), 2, &column).unwrap();
    let column = batch.column(0).as_primitive::<Decimal128Type>();
    assert_eq!(column.values().as_ref(), [-1, 0x7f01]);
}

#[test]
fn bytes_come_from_wherever_they_are() {
    let bytes = b"xxabcyyde";
    // The second row's span is that of a null, and of no meaning.
    let (offsets, lengths, nulls) = ([2_i32, -7, 7, 0], [3_i32, -1, 2, 0], [0_u8, 1, 0, 0]);
    let spans = [address(&offsets), address(&lengths), address(bytes)];
    let column = [&[2, address(&nulls)], spans.as_slice()].concat();
    let batch = import(DataType::Binary, 4, &column).unwrap();
    let expected = BinaryArray::from_opt_vec(vec![Some(b"abc"), None, Some(b"de"), Some(b"")]);
    assert_eq!(batch.column(0).as_binary::<i32>(), &expected);
}

#[test]
fn lists_take_the_elements_that_they_refer_to() {
    let elements = [1_i32, 2, 3, 4, 5];
    let (offsets, lengths) = ([3_i32, 0], [2_i32, 1]);
    let column = [
        3,
        0,
        address(&offsets),
        address(&lengths),
        5,
        1,
        0,
        address(&elements),
    ];
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int32, true)));
    let batch = import(list.clone(), 2, &column).unwrap();
    let expected = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(4), Some(5)]),
        Some(vec![Some(1)]),
    ]);
    let found = batch.column(0).as_list::<i32>();
    assert_eq!(
        (found.value(0).as_ref(), found.value(1).as_ref()),
        (&*expected.value(0), &*expected.value(1))
    );

    let short = [
        3,
        0,
        address(&offsets),
        address(&lengths),
        4,
        1,
        0,
        address(&elements),
    ];
    assert!(matches!(
        import(list, 2, &short),
        Err(VectorError::Descriptor(_))
    ));
}

#[test]
fn dictionaries_are_looked_up() {
    let (entries, ids, nulls) = ([10_i32, 20], [1_u32, 99, 0], [0_u8, 1, 0]);
    let column = |count| {
        [
            5,
            address(&nulls),
            address(&ids),
            count,
            1,
            0,
            address(&entries),
        ]
    };
    let batch = import(DataType::Int32, 3, &column(2)).unwrap();
    let expected = Int32Array::from(vec![Some(20), None, Some(10)]);
    assert_eq!(batch.column(0).as_primitive::<Int32Type>(), &expected);
    let error = import(DataType::Int32, 3, &column(1)).unwrap_err();
    assert!(
        error.to_string().contains("past the end of a dictionary"),
        "{error}"
    );
}

#[test]
fn exported_arrays_are_taken_over_whole_and_copied_in_part() {
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let exported = || export(&array.to_data()).unwrap();
    let whole = import(DataType::Int32, 4, &[6, exported(), 0]).unwrap();
    assert_eq!(whole.column(0), &array);
    let data = |array: &ArrayRef| array.to_data().buffers().first().unwrap().as_ptr();
    assert_eq!(data(whole.column(0)), data(&array));
    let part = import(DataType::Int32, 2, &[6, exported(), 1]).unwrap();
    assert_eq!(part.column(0).as_ref(), array.slice(1, 2).as_ref());
    assert_ne!(data(part.column(0)), data(&array));
    assert!(import(DataType::Int32, 4, &[6, exported(), 1]).is_err());
    assert!(import(DataType::Int64, 4, &[6, exported(), 0]).is_err());
    let once = exported();
    import(DataType::Int32, 4, &[6, once, 0]).unwrap();
    assert!(import(DataType::Int32, 4, &[6, once, 0]).is_err());
}

#[test]
fn nothing_is_kept_of_exported_arrays_that_were_released() {
    let data = Int32Array::from(vec![1, 2]).to_data();
    let references = || data.buffers().first().unwrap().strong_count();
    let before = references();
    let field = || Field::new("c", DataType::Int32, true);
    let importer = VectorImporter::new(&Arc::new(Schema::new(vec![field(), field()])), false);
    let (first, second) = (export(&data).unwrap(), export(&data).unwrap());
    // The kind of the second column is unknown.
    for kind in [99, 6] {
        let numbers = [9, 2, 0, 6, first, 0, kind, second, 0];
        // SAFETY: the descriptor and what it names outlive the call.
        let imported = unsafe { importer.import(address(&numbers)) };
        assert!(imported.is_err());
    }
    for exported in [first, second] {
        // SAFETY: it is not released before.
        unsafe { release(exported) };
    }
    assert_eq!(references(), before);
}

#[test]
fn what_is_described_wrongly_is_an_error() {
    let values = [1_i32];
    for column in [
        vec![],
        vec![1, 0],
        vec![7, 0, 0],
        vec![4, 0],
        vec![1, 0, address(&values), 0],
    ] {
        let error = import(DataType::Int32, 1, &column).unwrap_err();
        assert!(
            matches!(error, VectorError::Descriptor(_)),
            "{column:?}: {error}"
        );
    }
}

#[test]
fn bytes_beyond_32_bit_offsets_are_too_large() {
    let (offsets, lengths) = ([0_i32; 3], [1_i32 << 30; 3]);
    // The lengths are added up before any byte is read.
    let column = [2, 0, address(&offsets), address(&lengths), 0];
    let error = import(DataType::Binary, 3, &column).unwrap_err();
    assert!(
        matches!(error, VectorError::TooLarge { rows: 3, .. }),
        "{error}"
    );
}

#[test]
fn partition_ids_come_last() {
    let (values, ids) = ([5_i32, 6], [1_i32, 0]);
    let importer = VectorImporter::new(&schema(DataType::Int32), true);
    let numbers = [6, 2, address(&ids), 1, 0, address(&values)];
    // SAFETY: the arrays outlive the call.
    let batch = unsafe { importer.import(address(&numbers)) }.unwrap();
    assert_eq!(batch.num_columns(), 2);
    let found = batch.column(1).as_primitive::<Int32Type>();
    assert_eq!(found.values().as_ref(), ids);
}
