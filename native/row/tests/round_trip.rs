//! Values that go into UnsafeRows come out of Arrow with the same bits.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use arrow_array::Array;
use comet_row::{RowTransposer, SparkField, SparkType};
use support::random::Random;
use support::{Value, array_of, field, map_of, read, refs, schema, transposer, write};

fn check(transposer: &mut RowTransposer, fields: &[SparkField], rows: &[Vec<Value>]) {
    let bytes: Vec<_> = rows.iter().map(|row| write::row(fields, row)).collect();
    let batch = support::transpose(transposer, &bytes).unwrap();
    assert_eq!(batch.num_rows(), rows.len());
    assert_eq!(batch.schema(), transposer.schema().arrow_schema());
    assert_eq!(read::rows(fields, &batch), rows);

    // The same rows at the alignment that they have in pages.
    let page = support::page(&bytes);
    let rows = refs(&page).unwrap();
    // SAFETY: the page outlives the call.
    assert_eq!(unsafe { transposer.transpose(&rows) }.unwrap(), batch);
}

#[test]
fn random_schemas_and_values() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let fields = random.fields(12, 4);
        let mut transposer = transposer(&fields);
        // Several batches, so that nothing is left over from one to the next.
        for _ in 0..3 {
            let nulls = [0, 0, 1, 4, 8][random.below(5)];
            let count = [0, 1, 63, 64, 65, 300][random.below(6)];
            let rows: Vec<_> = (0..count).map(|_| random.row(&fields, nulls)).collect();
            println!("seed {seed}: {count} rows, {nulls}/8 null, {fields:?}");
            check(&mut transposer, &fields, &rows);
        }
    }
}

#[test]
fn more_than_64_columns() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let fields: Vec<_> = (0..200).map(|_| field("x", random.data_type(1))).collect();
        let rows: Vec<_> = (0..100).map(|_| random.row(&fields, 1)).collect();
        check(&mut transposer(&fields), &fields, &rows);
    }
}

#[test]
fn chunks_join_up() {
    let fields = [
        field("id", SparkType::Long),
        field("late", SparkType::String),
        field("list", array_of(SparkType::Boolean)),
    ];
    let row = |id: i64| {
        let late = if id < 5000 {
            Value::Bytes(vec![7; 3])
        } else {
            Value::Null
        };
        let list = (0..id % 7).map(|i| Value::Boolean(i % 2 == 0)).collect();
        vec![Value::Long(id), late, Value::Array(list)]
    };
    check(
        &mut transposer(&fields),
        &fields,
        &(0..10_001).map(row).collect::<Vec<_>>(),
    );
}

#[test]
fn no_columns_and_empty_structs() {
    check(&mut transposer(&[]), &[], &vec![vec![]; 1000]);

    let empty = SparkType::Struct(vec![]);
    let fields = [field("s", empty.clone()), field("a", array_of(empty))];
    let structs = Value::Array(vec![Value::Struct(vec![]), Value::Null]);
    let rows = [
        vec![Value::Struct(vec![]), structs],
        vec![Value::Null, Value::Null],
    ];
    check(&mut transposer(&fields), &fields, &rows);
}

#[test]
fn bitmaps_only_where_nulls_are() {
    let fields = [field("a", SparkType::Int), field("b", SparkType::Int)];
    let rows = [
        vec![Value::Int(1), Value::Null],
        vec![Value::Int(2), Value::Int(3)],
    ];
    let bytes: Vec<_> = rows.iter().map(|row| write::row(&fields, row)).collect();
    let batch = support::transpose(&mut transposer(&fields), &bytes).unwrap();
    assert!(batch.column(0).nulls().is_none());
    assert_eq!(batch.column(1).null_count(), 1);
}

#[test]
fn the_arrow_schema() {
    let fields = [
        field("s", SparkType::String),
        field("t", SparkType::Timestamp),
        field("m", map_of(SparkType::String, array_of(SparkType::Binary))),
        field(
            "s",
            SparkType::Decimal {
                precision: 20,
                scale: -3,
            },
        ),
    ];
    let arrow = schema(&fields).arrow_schema();
    assert_eq!(arrow.field(0).metadata()["spark.type"], "string");
    assert!(arrow.fields().iter().all(|field| field.is_nullable()));
    let types: Vec<_> = arrow
        .fields()
        .iter()
        .map(|f| f.data_type().to_string())
        .collect();
    assert_eq!(types[1], "Timestamp(µs, \"UTC\")");
    assert!(
        types[2].contains("\"key\": non-null Binary"),
        "{}",
        types[2]
    );
    assert_eq!(types[3], "Decimal128(20, -3)");
}

/// Bytes that Spark 4.1 wrote, from the project's notes on the row format.
#[test]
fn bytes_that_spark_wrote() {
    let fields = [
        field("i", SparkType::Int),
        field("b", SparkType::Byte),
        field("v", SparkType::Variant),
        field(
            "d",
            SparkType::Decimal {
                precision: 38,
                scale: 0,
            },
        ),
        field("c", SparkType::CalendarInterval),
    ];
    let words: [u64; 12] = [
        0b11000,
        0x0000_0000_ffff_ffff, // int -1 isn't sign-extended
        0x0000_0000_0000_00ff,
        48 << 32 | 9,
        64 << 32,      // a null wide decimal: an offset, no size
        80 << 32 | 16, // a null interval: offset and size
        u64::from_le_bytes([2, 0, 0, 0, 0x0c, 0x05, 1, 0]),
        0,
        0,
        0,
        0,
        0,
    ];
    let row = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let batch = support::transpose(&mut transposer(&fields), &[row]).unwrap();
    let variant = Value::Variant(vec![0x0c, 0x05], vec![1, 0, 0]);
    let expected = vec![
        Value::Int(-1),
        Value::Byte(-1),
        variant,
        Value::Null,
        Value::Null,
    ];
    assert_eq!(read::rows(&fields, &batch), [expected]);
}
