//! Rows that went into Arrow come out with the same bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_sign_loss)]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use comet_row::{RowError, SparkField, SparkType, UnsafeRowWriter, UnsafeRows, unsafe_row_bytes};
use support::random::Random;
use support::{Value, array_of, field, map_of, schema, transposer, write};

const ALL: usize = usize::MAX;

fn bytes_of(rows: UnsafeRows) -> Vec<Vec<u8>> {
    assert_eq!(rows.address.align_offset(8), 0);
    let mut start = 0;
    let row = |length: &i32| {
        let length = *length as usize;
        assert_eq!(length % 8, 0);
        // SAFETY: the writer says that its rows are there.
        let row = unsafe { std::slice::from_raw_parts(rows.address.add(start), length) };
        start += length;
        row.to_vec()
    };
    rows.lengths.iter().map(row).collect()
}

fn all_rows(writer: &mut UnsafeRowWriter, batch: &RecordBatch) -> Vec<Vec<u8>> {
    bytes_of(writer.write(batch, 0, ALL, ALL).unwrap())
}

fn check(writer: &mut UnsafeRowWriter, random: &mut Random, fields: &[SparkField], nulls: usize) {
    let count = [0, 1, 63, 64, 65, 300][random.below(6)];
    let rows: Vec<_> = (0..count).map(|_| random.row(fields, nulls)).collect();
    let rows: Vec<_> = rows.iter().map(|row| write::row(fields, row)).collect();
    let batch = support::transpose(&mut transposer(fields), &rows).unwrap();
    assert_eq!(all_rows(writer, &batch), rows);
    let bytes: usize = rows.iter().map(Vec::len).sum();
    assert_eq!(unsafe_row_bytes(&schema(fields), &batch), bytes as u64);

    let mut first = 0;
    while first < count {
        let max_rows = 1 + random.below(100);
        let max_bytes = random.below(4000);
        let written = writer.write(&batch, first, max_rows, max_bytes).unwrap();
        let written = bytes_of(written);
        assert!((1..=max_rows).contains(&written.len()));
        assert_eq!(written, rows[first..first + written.len()]);
        first += written.len();
        let bytes: usize = written.iter().map(Vec::len).sum();
        assert!(bytes <= max_bytes || written.len() == 1);
        if written.len() < max_rows && first < count {
            assert!(bytes + rows[first].len() > max_bytes, "stopped early");
        }
    }

    // Arrays that begin in the middle of their buffers.
    let start = random.below(count + 1);
    let sliced = batch.slice(start, count - start);
    assert_eq!(all_rows(writer, &sliced), rows[start..]);
}

#[test]
fn random_schemas_and_values() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let fields = random.fields(12, 4);
        let mut writer = UnsafeRowWriter::new(schema(&fields));
        // Several batches, so that garbage from one would show in the next.
        for _ in 0..4 {
            let nulls = [0, 0, 1, 4, 8][random.below(5)];
            println!("seed {seed}: {nulls}/8 null, {fields:?}");
            check(&mut writer, &mut random, &fields, nulls);
        }
    }
}

#[test]
fn more_than_64_columns() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let fields: Vec<_> = (0..200).map(|_| field("x", random.data_type(1))).collect();
        let mut writer = UnsafeRowWriter::new(schema(&fields));
        check(&mut writer, &mut random, &fields, 1);
    }
}

#[test]
fn one_type_at_a_time() {
    let decimal = |precision| SparkType::Decimal {
        precision,
        scale: 2,
    };
    let leaves = [
        SparkType::Null,
        SparkType::Boolean,
        SparkType::Byte,
        SparkType::Short,
        SparkType::Int,
        SparkType::Long,
        SparkType::Float,
        SparkType::Double,
        decimal(18),
        decimal(19),
        SparkType::String,
        SparkType::Binary,
        SparkType::Date,
        SparkType::Timestamp,
        SparkType::TimestampNtz,
        SparkType::Time,
        SparkType::YearMonthInterval,
        SparkType::DayTimeInterval,
        SparkType::CalendarInterval,
        SparkType::Variant,
    ];
    for leaf in leaves {
        let member = SparkType::Struct(vec![field("a", leaf.clone()), field("b", leaf.clone())]);
        let types = [
            leaf.clone(),
            member.clone(),
            array_of(leaf.clone()),
            array_of(member),
            array_of(array_of(leaf.clone())),
            map_of(SparkType::Int, leaf),
        ];
        for data_type in types {
            let fields = [field("x", data_type), field("y", SparkType::Long)];
            let mut writer = UnsafeRowWriter::new(schema(&fields));
            let mut random = Random(7);
            for nulls in [0, 2, 8, 0] {
                check(&mut writer, &mut random, &fields, nulls);
            }
        }
    }
}

#[test]
fn no_columns() {
    let rows = vec![vec![]; 100];
    let batch = support::transpose(&mut transposer(&[]), &rows).unwrap();
    let mut writer = UnsafeRowWriter::new(schema(&[]));
    assert_eq!(all_rows(&mut writer, &batch), rows);
    let some = writer.write(&batch, 90, 20, 0).unwrap();
    assert_eq!(some.lengths, [0; 10]);
    assert!(writer.write(&batch, 100, 1, 0).unwrap().lengths.is_empty());
    assert!(writer.write(&batch, ALL, 1, 0).unwrap().lengths.is_empty());
}

#[test]
fn what_lies_under_a_null_struct_does_not_show() {
    let member = SparkType::Struct(vec![field("i", SparkType::Int)]);
    let fields = [field("s", member)];
    let hidden: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let members = Fields::from(vec![Field::new("i", DataType::Int32, true)]);
    let nulls = NullBuffer::from(vec![true, false]);
    let structs = StructArray::new(members, vec![hidden], Some(nulls));
    let batch = RecordBatch::try_from_iter([("s", Arc::new(structs) as ArrayRef)]).unwrap();
    let rows = [
        write::row(&fields, &[Value::Struct(vec![Value::Int(1)])]),
        write::row(&fields, &[Value::Null]),
    ];
    let mut writer = UnsafeRowWriter::new(schema(&fields));
    assert_eq!(all_rows(&mut writer, &batch), rows);
}

#[test]
fn columns_of_other_types_are_refused() {
    let inner = SparkType::Struct(vec![field("i", array_of(SparkType::Long))]);
    let fields = [field("s", inner)];
    let other = [field(
        "s",
        SparkType::Struct(vec![field("i", array_of(SparkType::Int))]),
    )];
    let row = write::row(
        &other,
        &[Value::Struct(vec![Value::Array(vec![Value::Int(1)])])],
    );
    let batch = support::transpose(&mut transposer(&other), &[row]).unwrap();
    let error = UnsafeRowWriter::new(schema(&fields))
        .write(&batch, 0, ALL, ALL)
        .unwrap_err();
    assert!(matches!(error, RowError::Malformed { .. }));
    assert!(
        error.to_string().contains("`s.i`: a column of Int32"),
        "{error}"
    );

    let error = UnsafeRowWriter::new(schema(&[]))
        .write(&batch, 0, ALL, ALL)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`<row>`: 1 columns instead of 0"),
        "{error}"
    );
}
