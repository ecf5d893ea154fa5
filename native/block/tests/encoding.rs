//! The payload is what Arrow's own writer makes of the same rows.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[allow(dead_code)]
mod common;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
    make_array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::{MetadataVersion, root_as_message};
use arrow_schema::{DataType, Schema};
use comet_block::{BlockError, BlockReader, BlockRows, BlockWriter, Codec, RowRange};
use common::{HEADER, IPC, IPC_BATCH, IPC_BODY, KIND, all_null, all_types, batch_of, block_of};

fn by_arrow(batch: &RecordBatch, alignment: usize) -> Vec<u8> {
    let options = IpcWriteOptions::try_new(alignment, false, MetadataVersion::V5).unwrap();
    let mut stream =
        StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    stream.write(batch).unwrap();
    let mut stream = stream.get_ref().clone();
    place_empty_buffers(&mut stream);
    stream
}

/// Puts buffers of length 0 at offset 0: where they lie is of no meaning.
fn place_empty_buffers(stream: &mut [u8]) {
    let message = &stream[message_length(stream) + 8..];
    let message = root_as_message(message).unwrap();
    let Some(buffers) = message.header_as_record_batch().unwrap().buffers() else {
        return;
    };
    let start = buffers.bytes().as_ptr().addr() - stream.as_ptr().addr();
    let empty = (0..buffers.len()).filter(|index| buffers.get(*index).length() == 0);
    for index in empty.collect::<Vec<_>>() {
        let at = start + index * 16;
        stream[at..at + 8].fill(0);
    }
}

fn alignment(batch: &RecordBatch) -> usize {
    let wide = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Decimal128(..) | DataType::Decimal256(..)
        )
    };
    let schema = batch.schema();
    let mut types = schema.fields().iter().map(|field| field.data_type());
    if types.any(wide) { 16 } else { 8 }
}

/// Compares blocks with what Arrow makes of `batch`: all of a stream, of small blocks the record
/// batch message or the body.
#[track_caller]
fn assert_same(batch: &RecordBatch) {
    let block = block_of(batch, Codec::None, true);
    let payload = &block[HEADER..];
    let stream = by_arrow(batch, alignment(batch));
    let schema = message_length(&stream);
    match block[KIND] {
        IPC => assert_eq!(payload, stream),
        IPC_BATCH => assert_eq!(payload, &stream[schema..]),
        _ => {
            let stream = by_arrow(batch, 8);
            let batch_message = &stream[message_length(&stream)..];
            let body = &batch_message[message_length(batch_message)..];
            assert_eq!(&payload[payload.len() - body.len()..], body);
            let read = BlockReader::new(batch.schema()).unwrap().read(&block);
            assert_eq!(&read.unwrap().batch, batch);
        }
    }
    let compressed = block_of(batch, Codec::Snappy, true);
    let mut raw = compressed[HEADER..].to_vec();
    if compressed[4] != 0 {
        raw = snap::raw::Decoder::new().decompress_vec(&raw).unwrap();
    }
    let start = if compressed[KIND] == IPC { 0 } else { schema };
    assert_eq!(raw, &stream[start..]);
}

/// The length of the message that `stream` starts with.
fn message_length(stream: &[u8]) -> usize {
    u32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize + 8
}

#[test]
fn bytes_are_those_of_arrow() {
    for rows in [1, 2, 8, 9, 63, 64, 65, 1000] {
        let batch = all_types(rows);
        let block = block_of(&batch, Codec::None, true);
        assert_eq!(block[KIND], if rows < 1000 { IPC_BODY } else { IPC });
        assert_same(&batch);
        // With one row there is a column without bytes, whose length Arrow leaves out.
        for column in batch.columns().iter().filter(|_| rows > 1) {
            assert_same(&batch_of(vec![Arc::clone(column)]));
        }
        assert_same(&all_null(&batch.schema(), rows));
    }
}

#[test]
fn blocks_hold_messages_where_they_cost_little() {
    let numbers = |rows: usize| {
        batch_of(vec![Arc::new(Int64Array::from_iter_values(
            (0..rows).map(|row| i64::try_from(row).unwrap()),
        )) as ArrayRef])
    };
    let schema = message_length(&by_arrow(&numbers(1), 8));
    let enough = schema * 64 / size_of::<i64>();
    for (rows, kind) in [(1, IPC_BODY), (enough - 1, IPC_BODY), (enough, IPC)] {
        let block = block_of(&numbers(rows), Codec::None, true);
        assert_eq!(block[KIND], kind, "{rows} rows");
        assert_same(&numbers(rows));
    }
    let wide = batch_of(vec![
        Arc::new(BinaryArray::from_iter_values([vec![0; 1 << 20]])) as ArrayRef,
    ]);
    assert_eq!(block_of(&wide, Codec::None, true)[KIND], IPC_BODY);
}

#[test]
fn rows_without_buffers() {
    assert_same(&batch_of(vec![Arc::new(NullArray::new(7)) as ArrayRef]));
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let schema = Arc::new(Schema::empty());
    assert_same(&RecordBatch::try_new_with_options(schema, vec![], &options).unwrap());
}

fn range(batch: usize, start: usize, length: usize) -> RowRange {
    RowRange {
        batch,
        start,
        length,
    }
}

#[test]
fn a_range_is_a_slice() {
    let batch = all_types(300);
    let mut reader = BlockReader::new(batch.schema()).unwrap();
    // A slice of a slice, so that arrays have offsets of their own.
    for (offset, length) in [(0, 300), (1, 299), (8, 200), (13, 77)] {
        let batch = batch.slice(offset, length);
        let mut writer = BlockWriter::new(batch.schema(), Codec::None).unwrap();
        let rows = BlockRows::new(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
        for (start, end) in [
            (0, length),
            (0, 0),
            (length, length),
            (1, 2),
            (8, 24),
            (3, 77),
        ] {
            let range = range(0, start, end - start);
            let mut block = Vec::new();
            let stats = writer.write_rows(&rows, &[range], false, &mut block);
            let expected = batch.slice(start, end - start);
            assert_eq!(stats.unwrap().rows as usize, end - start);
            assert_eq!(reader.read(&block).unwrap().batch, expected);
            assert_eq!(block, block_of(&expected, Codec::None, false));
            let estimate = rows.bytes(range);
            let written = block.len() - block_of(&batch.slice(0, 0), Codec::None, false).len();
            assert!(estimate + 1500 > written && estimate < written + 1500);
            assert!(estimate < rows.widest_row() * (end - start) + 100);
        }
    }
}

#[test]
fn ranges_are_joined() {
    let schema = all_types(0).schema();
    let some = |rows: usize, from: usize| {
        let columns = all_types(from + rows).slice(from, rows).columns().to_vec();
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    };
    let nulls = all_null(&schema, 50);
    let batches = [some(100, 0), nulls, some(77, 5), some(0, 3)];
    let rows = BlockRows::new(&schema, &batches).unwrap();
    let mut writer = BlockWriter::new(Arc::clone(&schema), Codec::None).unwrap();
    for ranges in [
        vec![],
        vec![range(0, 0, 1), range(0, 1, 99)],
        vec![range(2, 3, 70), range(0, 99, 1), range(1, 7, 9)],
        vec![
            range(1, 0, 50),
            range(3, 0, 0),
            range(2, 0, 77),
            range(2, 0, 77),
        ],
        (0..77).map(|row| range(2, 76 - row, 1)).collect(),
    ] {
        let mut block = Vec::new();
        writer.write_rows(&rows, &ranges, true, &mut block).unwrap();
        let columns = (0..schema.fields().len()).map(|column| {
            let data = batches.iter().map(|batch| batch.column(column).to_data());
            let data: Vec<_> = data.collect();
            let mut joined = MutableArrayData::new(data.iter().collect(), false, 0);
            for range in &ranges {
                joined
                    .try_extend(range.batch, range.start, range.start + range.length)
                    .unwrap();
            }
            make_array(joined.freeze())
        });
        let expected = RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap();
        assert_eq!(block, block_of(&expected, Codec::None, true));
        let mut reader = BlockReader::new(Arc::clone(&schema)).unwrap();
        assert_eq!(reader.read(&block).unwrap().batch, expected);
    }
}

#[test]
fn offsets_of_joined_ranges_are_limited() {
    // The same bytes over and over, so that they take no memory.
    let bytes = Buffer::from(vec![0; 1 << 20]);
    let offsets = OffsetBuffer::from_lengths([1 << 20]);
    let column = BinaryArray::new(offsets, bytes, None);
    let batch = batch_of(vec![Arc::new(column)]);
    let rows = BlockRows::new(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let mut writer = BlockWriter::new(batch.schema(), Codec::None).unwrap();
    let mut out = vec![7];
    let ranges = vec![range(0, 0, 1); 2048];
    let error = writer
        .write_rows(&rows, &ranges, false, &mut out)
        .unwrap_err();
    assert!(matches!(error, BlockError::Limit(_)), "{error}");
    assert_eq!(out, [7]);
}

#[test]
fn ranges_and_writers_must_fit() {
    let batch = all_types(10);
    let mut writer = BlockWriter::new(batch.schema(), Codec::Lz4).unwrap();
    let rows = BlockRows::new(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let mut out = vec![7];
    for range in [
        range(0, 0, 11),
        range(0, 11, 0),
        range(1, 0, 0),
        range(0, 5, usize::MAX),
    ] {
        let error = writer
            .write_rows(&rows, &[range], false, &mut out)
            .unwrap_err();
        assert!(matches!(error, BlockError::Schema(_)), "{error}");
    }
    let schema = Arc::new(batch.schema().as_ref().clone());
    let mut other = BlockWriter::new(schema, Codec::Lz4).unwrap();
    let error = other
        .write_rows(&rows, &[range(0, 0, 10)], false, &mut out)
        .unwrap_err();
    assert!(matches!(error, BlockError::Schema(_)), "{error}");
    assert_eq!(out, [7]);
}
