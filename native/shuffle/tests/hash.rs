//! Spark's own hashes. With 2^24 partitions a partition id is the lower 24 bits of the hash.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_sign_loss
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::unreadable_literal
)]

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use comet_shuffle_writer::ShufflePartitioning;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;

const MOST: usize = 1 << 24;

fn partition(columns: Vec<ArrayRef>, partitions: usize) -> Vec<u32> {
    let names = columns.iter().enumerate();
    let fields = names.map(|(n, c)| Field::new(n.to_string(), c.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let keys = (0..columns.len()).map(|n| Arc::new(Column::new(&n.to_string(), n)) as _);
    let keys: Vec<Arc<dyn PhysicalExpr>> = keys.collect();
    let partitioning = ShufflePartitioning::Hash { keys, partitions };
    let mut partitioner = partitioning.partitioner(&schema).unwrap();
    let mut ids = Vec::new();
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    partitioner.assign(&batch, &mut ids).unwrap();
    ids
}

fn check(array: impl Array + 'static, hashes: &[i32]) {
    let array: ArrayRef = Arc::new(array);
    // 16,777,216 and an odd divisor together see every bit.
    for divisor in [MOST, MOST - 1] {
        let ids = partition(vec![Arc::clone(&array)], divisor);
        let wanted = hashes
            .iter()
            .map(|hash| hash.rem_euclid(divisor as i32) as u32);
        assert_eq!(ids, wanted.collect::<Vec<_>>(), "{}", array.data_type());
    }
    // The same values behind an offset.
    for (row, hash) in hashes.iter().enumerate() {
        let ids = partition(vec![array.slice(row, 1)], MOST);
        assert_eq!(ids, [hash.rem_euclid(MOST as i32) as u32]);
    }
}

#[test]
fn integers_and_booleans() {
    check(
        BooleanArray::from(vec![Some(true), None]),
        &[-559580957, 42],
    );
    check(
        Int8Array::from(vec![Some(1), Some(-1), None]),
        &[-559580957, -1604776387, 42],
    );
    check(Int16Array::from(vec![1, -1]), &[-559580957, -1604776387]);
    check(Int32Array::from(vec![1, -1]), &[-559580957, -1604776387]);
    check(
        Int64Array::from(vec![1, i64::MIN]),
        &[-1712319331, -853646085],
    );
    check(NullArray::new(1), &[42]);
}

#[test]
fn floats() {
    let nan = f32::from_bits(0xffc0_0001);
    let hashes = [933211791, 933211791, -349261430, -349261430];
    check(Float32Array::from(vec![0.0, -0.0, f32::NAN, nan]), &hashes);
    let nan = f64::from_bits(0xfff0_0000_0000_0001);
    let hashes = [
        1290763749,
        -1670924195,
        -1670924195,
        -1281358385,
        -1281358385,
    ];
    check(
        Float64Array::from(vec![1.5, 0.0, -0.0, f64::NAN, nan]),
        &hashes,
    );
}

#[test]
fn dates_and_times() {
    check(Date32Array::from(vec![19000]), &[-779492372]);
    let instant = TimestampMicrosecondArray::from(vec![1_000_000_000_000_000]);
    check(instant.clone(), &[1911365612]);
    check(instant.with_timezone("UTC"), &[1911365612]);
    let noon = ((12 * 60 + 34) * 60 + 56) * 1_000_000_000_i64;
    check(Time64NanosecondArray::from(vec![noon]), &[1670312766]);
    check(IntervalYearMonthArray::from(vec![13]), &[-1057351352]);
    check(
        DurationMicrosecondArray::from(vec![1_000_000]),
        &[-1715802514],
    );
}

#[test]
fn decimals() {
    let decimal = |values: Vec<i128>, precision, scale| {
        let array = Decimal128Array::from(values);
        array.with_precision_and_scale(precision, scale).unwrap()
    };
    check(decimal(vec![12345], 10, 2), &[1416086240]);
    check(decimal(vec![-1], 18, 0), &[-939490007]);
    check(decimal(vec![12345], 38, 2), &[589679666]);
    let values = vec![-1, 12345678901234567890123456789012345678];
    check(decimal(values, 38, 0), &[1398487324, -1328266464]);
}

#[test]
fn bytes() {
    let texts = ["", "abc", "abcdeé"];
    let hashes = [142593372, 1322437556, -1044757832];
    check(StringArray::from(texts.to_vec()), &hashes);
    check(LargeStringArray::from(texts.to_vec()), &hashes);
    check(
        BinaryArray::from(texts.map(str::as_bytes).to_vec()),
        &hashes,
    );
    check(BinaryArray::from(vec![&[1_u8, 2, 255][..]]), &[456895484]);
}

#[test]
fn nested() {
    let list = vec![Some(vec![Some(1), None, Some(3)]), None];
    check(
        ListArray::from_iter_primitive::<Int32Type, _, _>(list),
        &[1066699649, 42],
    );
    let fields: Vec<(Arc<Field>, ArrayRef)> = vec![
        (
            Arc::new(Field::new("a", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1])),
        ),
        (
            Arc::new(Field::new("b", DataType::Binary, true)),
            Arc::new(BinaryArray::from(vec![&b"a"[..]])),
        ),
        (
            Arc::new(Field::new("c", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![None])),
        ),
    ];
    check(StructArray::from(fields), &[-936062819]);
    // A map is its keys and values folded in turn, so this one hashes as the list [1, 3] does.
    let mut map = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
    map.keys().append_value(1);
    map.values().append_value(3);
    map.append(true).unwrap();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(3)])]);
    let wanted = partition(vec![Arc::new(list)], MOST);
    assert_eq!(partition(vec![Arc::new(map.finish())], MOST), wanted);
}

#[test]
fn keys_are_chained_and_never_negative() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1])),
        Arc::new(BinaryArray::from(vec![&b"abc"[..]])),
        Arc::new(Int32Array::from(vec![None])),
    ];
    assert_eq!(partition(columns, 200), [94]);
}

#[test]
fn other_types_are_refused() {
    let schema = Schema::new(vec![Field::new("a", DataType::UInt32, true)]);
    let keys: Vec<Arc<dyn PhysicalExpr>> = vec![Arc::new(Column::new("a", 0))];
    let partitioning = ShufflePartitioning::Hash {
        keys,
        partitions: 2,
    };
    assert!(partitioning.partitioner(&schema).is_err());
}
