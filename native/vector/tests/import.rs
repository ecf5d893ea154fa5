//! Batches described by hand, as the JVM describes them.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, ListArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use comet_vector::{JavaHeap, VectorError, VectorImporter, export, free, reallocate, release};

fn schema(data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("c", data_type, true)]))
}

fn address<T>(values: &[T]) -> i64 {
    values.as_ptr() as i64
}

/// The arrays of a JVM, as bytes.
#[derive(Default)]
struct Arrays(Vec<Vec<u8>>);

impl JavaHeap for Arrays {
    fn copy(
        &self,
        array: usize,
        offset: usize,
        target: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let array = self.0.get(array).ok_or("no such array")?;
        let end = offset + target.len();
        target.copy_from_slice(array.get(offset..end).ok_or("past its end")?);
        Ok(())
    }
}

impl Arrays {
    /// Refers to a new array, from byte `offset` on.
    fn add(&mut self, bytes: Vec<u8>, offset: i64) -> i64 {
        self.0.push(bytes);
        i64::MIN | (i64::try_from(self.0.len() - 1).unwrap() << 40) | offset
    }
}

fn little_endian(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// Imports a batch of one column.
fn import(data_type: DataType, rows: i64, column: &[i64]) -> Result<RecordBatch, VectorError> {
    import_from(&Arrays::default(), data_type, rows, &mut column.to_vec())
}

/// Imports a batch of one column, of which some may be in arrays, some be handed over.
fn import_from(
    arrays: &Arrays,
    data_type: DataType,
    rows: i64,
    column: &mut [i64],
) -> Result<RecordBatch, VectorError> {
    let count = i64::try_from(column.len() + 3).unwrap();
    let mut numbers = [&[count, rows, 0], &*column].concat();
    let importer = VectorImporter::new(&schema(data_type), false);
    // SAFETY: the callers describe memory that outlives the call.
    let imported = unsafe { importer.import(numbers.as_mut_ptr() as i64, arrays, usize::MAX) };
    column.copy_from_slice(numbers.get(3..).unwrap());
    imported
}

/// Address, bytes and capacity of memory that is handed over, with room to spare.
fn collected(bytes: &[u8]) -> [i64; 3] {
    let capacity = bytes.len() + 100;
    // SAFETY: memory of this function's, of more than these bytes.
    unsafe {
        let address = reallocate(0, 0, capacity);
        bytes
            .as_ptr()
            .copy_to_nonoverlapping(address as *mut u8, bytes.len());
        let size = |bytes| i64::try_from(bytes).unwrap();
        [address, size(bytes.len()), size(capacity)]
    }
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
fn decimals_of_more_than_16_bytes_may_repeat_their_sign() {
    for value in [0, 1, -1, i128::MAX, i128::MIN] {
        for more in [1, 4] {
            let sign = if value < 0 { 0xff } else { 0 };
            let bytes = [vec![sign; more], value.to_be_bytes().to_vec()].concat();
            let lengths = [i32::try_from(bytes.len()).unwrap()];
            let column = [2, 0, address(&[0_i32]), address(&lengths), address(&bytes)];
            let batch = import(DataType::Decimal128(38, 0), 1, &column).unwrap();
            let column = batch.column(0).as_primitive::<Decimal128Type>();
            assert_eq!(column.values().as_ref(), [value]);

            for other in [sign ^ 0xff, 1] {
                let bytes = [vec![other], bytes.get(1..).unwrap().to_vec()].concat();
                let column = [2, 0, address(&[0_i32]), address(&lengths), address(&bytes)];
                let error = import(DataType::Decimal128(38, 0), 1, &column).unwrap_err();
                assert!(error.to_string().contains("more than 16 bytes"), "{error}");
            }
        }
    }
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
    let column = |first: i64, count: i64| {
        let from = usize::try_from(first).unwrap();
        let elements = address(elements.get(from..).unwrap());
        let (offsets, lengths) = (address(&offsets), address(&lengths));
        [3, 0, offsets, lengths, first, count, 1, 0, elements]
    };
    let list = DataType::List(Arc::new(Field::new("element", DataType::Int32, true)));
    let batch = import(list.clone(), 2, &column(0, 5)).unwrap();
    let expected = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(4), Some(5)]),
        Some(vec![Some(1)]),
    ]);
    let found = batch.column(0).as_list::<i32>();
    assert_eq!(
        (found.value(0).as_ref(), found.value(1).as_ref()),
        (&*expected.value(0), &*expected.value(1))
    );

    // The first row alone, whose elements are the only ones that are described.
    let batch = import(list.clone(), 1, &column(3, 2)).unwrap();
    let found = batch.column(0).as_list::<i32>();
    assert_eq!(found.value(0).as_ref(), &*expected.value(0));
    assert_eq!(found.values().len(), 2);

    for (first, count) in [(0, 4), (1, 4)] {
        let error = import(list.clone(), 2, &column(first, count)).unwrap_err();
        assert!(matches!(error, VectorError::Descriptor(_)), "{error}");
    }
}

#[test]
fn dictionaries_are_looked_up() {
    let (entries, ids, nulls) = ([10_i32, 20], [1_u32, 99, 0], [0_u8, 1, 0]);
    let column = |count: i64| {
        [
            5,
            address(&nulls),
            address(&ids),
            count,
            0,
            0,
            0,
            address(&entries),
            count * 4,
            8,
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
fn what_is_in_arrays_of_the_jvm_is_like_what_is_not() {
    let mut arrays = Arrays::default();
    let values = arrays.add(little_endian(&[9, 1, 0x5555, -3]), 4);
    let nulls = arrays.add(vec![1, 0, 1, 0], 1);
    let batch = import_from(&arrays, DataType::Int32, 3, &mut [1, nulls, values]).unwrap();
    let column = batch.column(0).as_primitive::<Int32Type>();
    assert_eq!(column, &Int32Array::from(vec![Some(1), None, Some(-3)]));

    let offsets = arrays.add(little_endian(&[2, -7, 7, 0]), 0);
    let lengths = arrays.add(little_endian(&[3, -1, 2, 0]), 0);
    let nulls = arrays.add(vec![0, 1, 0, 0], 0);
    let bytes = arrays.add(b"xxabcyyde".to_vec(), 0);
    let column = &mut [2, nulls, offsets, lengths, bytes];
    let batch = import_from(&arrays, DataType::Binary, 4, column).unwrap();
    let expected = BinaryArray::from_opt_vec(vec![Some(b"abc"), None, Some(b"de"), Some(b"")]);
    assert_eq!(batch.column(0).as_binary::<i32>(), &expected);

    let column = &mut [2, nulls, offsets, lengths, values];
    let batch = import_from(&arrays, DataType::Decimal128(38, 0), 4, column).unwrap();
    let column = batch.column(0).as_primitive::<Decimal128Type>();
    assert_eq!(column.values().as_ref(), [0x55, 0, 0xfd, 0]);

    let missing = i64::MIN | (99 << 40);
    for column in [[1, 0, missing], [1, missing, values], [1, 0, values + 8]] {
        let error = import_from(&arrays, DataType::Int32, 3, &mut column.clone()).unwrap_err();
        assert!(matches!(error, VectorError::Heap(_)), "{error}");
    }
}

#[test]
fn collected_columns_are_taken_over() {
    let none = [0_i64; 3];
    let values = collected(&little_endian(&[1, 0, -3]));
    let validity = collected(&[0b101]);
    let start = values.first().copied().unwrap();
    let mut column = [&[7], validity.as_slice(), &values].concat();
    let batch = import_from(&Arrays::default(), DataType::Int32, 3, &mut column).unwrap();
    let found = batch.column(0).as_primitive::<Int32Type>();
    assert_eq!(found, &Int32Array::from(vec![Some(1), None, Some(-3)]));
    assert_eq!(found.values().inner().as_ptr() as i64, start);
    assert_eq!((column.get(1), column.get(4)), (Some(&0), Some(&0)));

    let (offsets, bytes) = (collected(&little_endian(&[0, 3, 3])), collected(b"abc"));
    let element = [&none[..], &offsets, &bytes].concat();
    let list_offsets = collected(&little_endian(&[0, 2]));
    let mut column = [&[7], &none[..], &list_offsets, &[2], &element].concat();
    let list = DataType::List(Arc::new(Field::new("element", DataType::Binary, true)));
    let batch = import_from(&Arrays::default(), list, 1, &mut column).unwrap();
    let list = batch.column(0).as_list::<i32>().value(0);
    let expected = BinaryArray::from_vec(vec![b"abc", b""]);
    assert_eq!(list.as_binary::<i32>(), &expected);
}

#[test]
fn collected_columns_with_wrong_buffers_are_errors_and_what_is_left_is_the_jvms() {
    let offsets = |last| collected(&little_endian(&[0, last]));
    // One offset past the bytes, and one more number than there should be.
    for (last, rest) in [(9, vec![]), (3, vec![1])] {
        let bytes = collected(b"abc");
        let column = [&[7, 0, 0, 0], offsets(last).as_slice(), &bytes, &rest].concat();
        assert!(import(DataType::Binary, 1, &column).is_err());
    }
    // The second column is never reached.
    let second = collected(&little_endian(&[1]));
    let mut numbers = [&[8, 1, 0, 99, 7], second.as_slice()].concat();
    let importer = VectorImporter::new(&schema(DataType::Int32), false);
    // SAFETY: the descriptor and what it names outlive the call.
    let imported =
        unsafe { importer.import(numbers.as_mut_ptr() as i64, &Arrays::default(), usize::MAX) };
    assert!(imported.is_err());
    let [address, _, capacity] = second;
    assert_eq!(numbers.get(5), Some(&address));
    // SAFETY: nobody took it over.
    unsafe { free(address, usize::try_from(capacity).unwrap()) };
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
        let mut numbers = [9, 2, 0, 6, first, 0, kind, second, 0];
        // SAFETY: the descriptor and what it names outlive the call.
        let imported =
            unsafe { importer.import(numbers.as_mut_ptr() as i64, &Arrays::default(), usize::MAX) };
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
        vec![8, 0, 0],
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
fn dictionary_values_beyond_32_bit_offsets_are_too_large() {
    let entry = vec![b'x'; 64 << 20];
    let length = i64::try_from(entry.len()).unwrap();
    let entry_offsets = [0_i32, i32::try_from(entry.len()).unwrap()];
    let (ids, nulls) = ([0_u32; 40], [0_u8; 40]);
    let (validity, offsets) = ([0, 0, 0], [address(&entry_offsets), 8, 8]);
    let entries = [address(&entry), length, length];
    let column = [
        &[5, address(&nulls), address(&ids), 1],
        &validity[..],
        &offsets,
        &entries,
    ];
    let error = import(DataType::Binary, 40, &column.concat()).unwrap_err();
    assert!(
        matches!(error, VectorError::TooLarge { rows: 40, .. }),
        "{error}"
    );
    // In a list with an element for each row, too.
    let (starts, lengths): (Vec<_>, _) = ((0..40_i32).collect(), [1_i32; 40]);
    let spans = [3, 0, address(&starts), address(&lengths), 0, 40];
    let list = DataType::List(Arc::new(Field::new("element", DataType::Binary, true)));
    let error = import(list, 40, &[&spans[..], &column.concat()].concat()).unwrap_err();
    assert!(matches!(error, VectorError::TooLarge { .. }), "{error}");
}

/// Whether a batch of one column is within `budget`.
fn within(budget: usize, data_type: DataType, rows: i64, column: &[i64]) -> bool {
    let count = i64::try_from(column.len() + 3).unwrap();
    let mut numbers = [&[count, rows, 0], column].concat();
    let importer = VectorImporter::new(&schema(data_type), false);
    let heap = Arrays::default();
    // SAFETY: the callers describe memory that outlives the call.
    let imported = unsafe { importer.import(numbers.as_mut_ptr() as i64, &heap, budget) };
    let over = matches!(imported, Err(VectorError::OverBudget));
    assert!(over || imported.is_ok(), "{imported:?}");
    !over
}

#[test]
fn batches_over_budget_are_told_before_they_are_copied() {
    let one_gib = 1_i32 << 30;
    let (ids, nulls) = ([0_u32; 4], [0_u8; 4]);
    let entry = vec![b'x'; 1000];
    let ends = [0_i32, 1000];
    let dictionary = [
        &[5, address(&nulls), address(&ids), 1, 0, 0, 0],
        &[address(&ends), 8, 8, address(&entry), 1000, 1000][..],
    ]
    .concat();
    assert!(within(4100, DataType::Binary, 4, &dictionary));
    assert!(!within(4000, DataType::Binary, 4, &dictionary));
    // There is nothing at these places, which are not looked at.
    let (starts, lengths) = ([0_i32; 2], [one_gib, 1000]);
    let bytes = [2, 0, address(&starts), address(&lengths), 0];
    assert!(!within(1 << 20, DataType::Binary, 2, &bytes));
    assert!(!within(
        1 << 20,
        DataType::Int64,
        one_gib.into(),
        &[1, 0, 8]
    ));
    // What was made elsewhere is not copied, but staged as it is.
    let array: ArrayRef = Arc::new(Int32Array::from(vec![7; 1000]));
    for (first, rows) in [(0, 1000), (1, 900)] {
        for (budget, fits) in [(3000, false), (5000, true)] {
            let exported = export(&array.to_data()).unwrap();
            let column = [6, exported, first];
            assert_eq!(within(budget, DataType::Int32, rows, &column), fits);
            // SAFETY: it is not released before.
            unsafe { release(exported) };
        }
    }
    for (budget, fits) in [(3000, false), (5000, true)] {
        let column = [&[7, 0, 0, 0], &collected(&[1; 4000])[..]].concat();
        assert_eq!(within(budget, DataType::Int32, 1000, &column), fits);
    }
    // One row cannot be cut.
    let column = [
        2,
        0,
        address(&[0_i32]),
        address(&[1000_i32]),
        address(&entry),
    ];
    assert!(within(10, DataType::Binary, 1, &column));
}

#[test]
fn names_of_nested_fields_may_differ_but_not_their_types() {
    let named = |name: &str, data_type: DataType| {
        DataType::Struct(vec![Field::new(name, data_type, true)].into())
    };
    let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let DataType::Struct(fields) = named("x", DataType::Int32) else {
        unreachable!()
    };
    let structs = StructArray::new(fields, vec![column], None);
    let exported = || export(&structs.to_data()).unwrap();
    let wanted = named("y", DataType::Int32);
    let batch = import(wanted.clone(), 2, &[6, exported(), 0]).unwrap();
    assert_eq!(batch.column(0).data_type(), &wanted);
    assert_eq!(batch.column(0).as_struct().column(0), structs.column(0));
    let part = import(wanted.clone(), 1, &[6, exported(), 1]).unwrap();
    assert_eq!(part.column(0).data_type(), &wanted);
    let error = import(named("x", DataType::Date32), 2, &[6, exported(), 0]).unwrap_err();
    assert!(matches!(error, VectorError::Descriptor(_)), "{error}");
}

#[test]
fn partition_ids_come_last() {
    let (values, ids) = ([5_i32, 6], [1_i32, 0]);
    let importer = VectorImporter::new(&schema(DataType::Int32), true);
    let mut numbers = [6, 2, address(&ids), 1, 0, address(&values)];
    // SAFETY: the arrays outlive the call.
    let batch =
        unsafe { importer.import(numbers.as_mut_ptr() as i64, &Arrays::default(), usize::MAX) }
            .unwrap();
    assert_eq!(batch.num_columns(), 2);
    let found = batch.column(1).as_primitive::<Int32Type>();
    assert_eq!(found.values().as_ref(), ids);
}
