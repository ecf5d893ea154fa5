//! Batches and bytes that the tests share.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, FixedSizeListBuilder, Int32Builder, Int64Builder, LargeListBuilder, ListBuilder,
    MapBuilder, MapFieldNames, NullBuilder,
};
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal32Array,
    Decimal64Array, Decimal128Array, Decimal256Array, DurationMicrosecondArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, IntervalDayTimeArray, IntervalMonthDayNanoArray, IntervalYearMonthArray,
    LargeBinaryArray, LargeStringArray, ListArray, NullArray, RecordBatch, StringArray,
    StructArray, Time32MillisecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array, new_null_array,
};
use arrow_buffer::{IntervalDayTime, NullBuffer, OffsetBuffer, i256};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use comet_block::{BlockWriter, Codec};

pub const HEADER: usize = 40;
/// Where a header has the payload kind, and the kinds.
pub const KIND: usize = 3;
pub const IPC: u8 = 1;
pub const IPC_BATCH: u8 = 3;
pub const IPC_BODY: u8 = 4;
pub const CODECS: [Codec; 4] = [
    Codec::None,
    Codec::Lz4,
    Codec::Zstd { level: 1 },
    Codec::Snappy,
];

/// A batch of every type that blocks hold, `rows` rows, every third value null.
pub fn all_types(rows: usize) -> RecordBatch {
    macro_rules! primitive {
        ($array:ty, $value:expr) => {
            Arc::new(<$array>::from_iter((0..rows).map(|row| {
                let make = $value;
                (row % 3 != 1).then(|| make(row as i64))
            }))) as ArrayRef
        };
    }
    let texts = || (0..rows).map(|row| (row % 3 != 1).then(|| "x".repeat(row % 7)));
    let bytes = || texts().map(|text| text.map(String::into_bytes));
    let lists = lists(rows);
    let structs = structs(rows);
    let list_of_structs = ListArray::new(
        Arc::new(Field::new("item", structs.data_type().clone(), true)),
        OffsetBuffer::from_lengths((0..rows).map(|_| 1)),
        Arc::new(structs.clone()),
        nulls(rows),
    );
    let columns: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(rows)),
        primitive!(BooleanArray, |v| v % 2 == 0),
        primitive!(Int8Array, |v| v as i8),
        primitive!(Int16Array, |v| v as i16 - 5),
        primitive!(Int32Array, |v| v as i32 * 70_000),
        primitive!(Int64Array, |v: i64| v.wrapping_mul(i64::MAX / 3)),
        primitive!(UInt8Array, |v| v as u8),
        primitive!(UInt16Array, |v| v as u16),
        primitive!(UInt32Array, |v| v as u32),
        primitive!(UInt64Array, |v| v as u64),
        primitive!(Float32Array, |v| v as f32 / 3.0),
        primitive!(Float64Array, |v| v as f64 / 3.0),
        primitive!(Decimal32Array, |v| v as i32),
        primitive!(Decimal64Array, |v| v),
        primitive!(Decimal128Array, |v| i128::from(v) * i128::from(i64::MAX)),
        primitive!(Decimal256Array, |v| i256::from_i128(i128::from(v))),
        primitive!(Date32Array, |v| v as i32 - 100),
        primitive!(Date64Array, |v| v * 86_400_000),
        primitive!(Time32MillisecondArray, |v| v as i32),
        primitive!(Time64NanosecondArray, |v| v),
        primitive!(TimestampMicrosecondArray, |v| v - 7),
        Arc::new(
            TimestampMicrosecondArray::from_iter_values((0..rows).map(|v| v as i64))
                .with_timezone("UTC"),
        ),
        primitive!(DurationMicrosecondArray, |v| v),
        primitive!(IntervalYearMonthArray, |v| v as i32),
        primitive!(IntervalDayTimeArray, |v| IntervalDayTime::new(v as i32, 1)),
        primitive!(IntervalMonthDayNanoArray, |v| {
            IntervalMonthDayNanoType::make_value(1, 2, v)
        }),
        Arc::new(bytes().collect::<BinaryArray>()),
        Arc::new(bytes().collect::<LargeBinaryArray>()),
        Arc::new(texts().collect::<StringArray>()),
        Arc::new(texts().collect::<LargeStringArray>()),
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                (0..rows).map(|row| (row % 3 != 1).then_some(b"abc")),
                3,
            )
            .unwrap(),
        ),
        lists.0,
        lists.1,
        lists.2,
        lists.3,
        map(rows),
        Arc::new(structs),
        Arc::new(list_of_structs),
        Arc::new(StructArray::new_empty_fields(rows, nulls(rows))),
    ];
    batch_of(columns)
}

/// A batch with nullable columns named `c0`, `c1`, ...
pub fn batch_of(columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(format!("c{index}"), column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// `rows` rows of `schema`, all null.
pub fn all_null(schema: &SchemaRef, rows: usize) -> RecordBatch {
    let columns = schema
        .fields()
        .iter()
        .map(|field| new_null_array(field.data_type(), rows))
        .collect();
    RecordBatch::try_new(schema.clone(), columns).unwrap()
}

/// Few rows of few types that compress well, for tests that try every bit.
pub fn small() -> RecordBatch {
    let ids = Int64Array::from_iter((0..20).map(|row| (row != 3).then_some(row / 8)));
    let names = BinaryArray::from_iter((0..20).map(|row| (row != 4).then(|| b"name".as_slice())));
    batch_of(vec![Arc::new(ids), Arc::new(names)])
}

/// One block.
pub fn block_of(batch: &RecordBatch, codec: Codec, last: bool) -> Vec<u8> {
    let mut block = Vec::new();
    let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
    writer.write(batch, last, &mut block).unwrap();
    block
}

/// Makes the checksum of a block right again, as an attacker or a bug in a writer would.
pub fn fix_checksum(block: &mut [u8]) {
    let checked = [&block[..12], &block[16..]].concat();
    block[12..16].copy_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
}

/// An uncompressed block with the header fields of `block` and another payload.
pub fn with_payload(block: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut changed = [&block[..HEADER], payload].concat();
    changed[4] = 0;
    changed[24..32].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    changed[32..40].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    fix_checksum(&mut changed);
    changed
}

/// The same for a payload of another kind.
pub fn with_kind(block: &[u8], kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut changed = with_payload(block, payload);
    changed[KIND] = kind;
    fix_checksum(&mut changed);
    changed
}

/// What Arrow's own writer makes of `batches`, its end-of-stream mark included.
pub fn stream_of(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut stream = StreamWriter::try_new_with_options(vec![], &schema, options).unwrap();
    for batch in batches {
        stream.write(batch).unwrap();
    }
    stream.into_inner().unwrap()
}

fn nulls(rows: usize) -> Option<NullBuffer> {
    Some(
        (0..rows)
            .map(|row| row % 3 != 1)
            .collect::<Vec<bool>>()
            .into(),
    )
}

fn lists(rows: usize) -> (ArrayRef, ArrayRef, ArrayRef, ArrayRef) {
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut large = LargeListBuilder::new(BinaryBuilder::new());
    let mut fixed = FixedSizeListBuilder::new(Int64Builder::new(), 2);
    let mut of_nulls = ListBuilder::new(NullBuilder::new());
    for row in 0..rows {
        for item in 0..row % 4 {
            list.values()
                .append_option((item != 1).then_some(item as i32));
            large.values().append_value(b"item");
            of_nulls.values().append_null();
        }
        fixed.values().append_value(row as i64);
        fixed.values().append_null();
        list.append(row % 3 != 1);
        large.append(row % 3 != 1);
        fixed.append(row % 3 != 1);
        of_nulls.append(row % 3 != 1);
    }
    (
        Arc::new(list.finish()),
        Arc::new(large.finish()),
        Arc::new(fixed.finish()),
        Arc::new(of_nulls.finish()),
    )
}

fn map(rows: usize) -> ArrayRef {
    let names = MapFieldNames {
        entry: "entries".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut map = MapBuilder::new(Some(names), BinaryBuilder::new(), Int64Builder::new());
    for row in 0..rows {
        for entry in 0..row % 3 {
            map.keys().append_value(format!("key{entry}"));
            map.values()
                .append_option((entry != 1).then_some(row as i64));
        }
        map.append(row % 3 != 1).unwrap();
    }
    Arc::new(map.finish())
}

fn structs(rows: usize) -> StructArray {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(
            (0..rows).map(|row| row as i32),
        )),
        Arc::new(NullArray::new(rows)),
        Arc::new(StructArray::new_empty_fields(rows, None)),
        map(rows),
    ];
    let fields = Fields::from(vec![
        Field::new("required", DataType::Int32, false),
        Field::new("nothing", DataType::Null, true),
        Field::new("empty", DataType::Struct(Fields::empty()), true),
        Field::new("map", columns[3].data_type().clone(), true),
    ]);
    StructArray::new(fields, columns, nulls(rows))
}
