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

use arrow_array::{ArrayRef, NullArray, RecordBatch, RecordBatchOptions};
use arrow_ipc::MetadataVersion;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Schema};
use comet_block::{BlockError, BlockReader, BlockWriter, Codec};
use common::{HEADER, all_null, all_types, batch_of, block_of};

fn by_arrow(batch: &RecordBatch, alignment: usize) -> Vec<u8> {
    let options = IpcWriteOptions::try_new(alignment, false, MetadataVersion::V5).unwrap();
    let mut stream =
        StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    stream.write(batch).unwrap();
    stream.get_ref().clone()
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

#[track_caller]
fn assert_same(batch: &RecordBatch) {
    let block = block_of(batch, Codec::None, true);
    assert_eq!(block[HEADER..], by_arrow(batch, alignment(batch)));
}

#[test]
fn bytes_are_those_of_arrow() {
    for rows in [1, 2, 8, 9, 63, 64, 65, 1000] {
        let batch = all_types(rows);
        assert_same(&batch);
        // With one row there is a column without bytes, whose length Arrow leaves out.
        for column in batch.columns().iter().filter(|_| rows > 1) {
            assert_same(&batch_of(vec![Arc::clone(column)]));
        }
        assert_same(&all_null(&batch.schema(), rows));
    }
}

#[test]
fn rows_without_buffers() {
    assert_same(&batch_of(vec![Arc::new(NullArray::new(7)) as ArrayRef]));
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let schema = Arc::new(Schema::empty());
    assert_same(&RecordBatch::try_new_with_options(schema, vec![], &options).unwrap());
}

#[test]
fn ranges_are_slices() {
    let batch = all_types(300);
    let mut writer = BlockWriter::new(batch.schema(), Codec::None).unwrap();
    let mut reader = BlockReader::new(batch.schema()).unwrap();
    // A slice of a slice, so that arrays have offsets of their own.
    for (offset, length) in [(0, 300), (1, 299), (8, 200), (13, 77)] {
        let batch = batch.slice(offset, length);
        let rows = writer.rows(&batch).unwrap();
        assert_eq!(rows.len(), length);
        for range in [
            0..length,
            0..0,
            length..length,
            1..2,
            8..24,
            3..77,
            5..6,
            40..77,
        ] {
            let mut block = Vec::new();
            let stats = writer.write_rows(&rows, range.clone(), false, &mut block);
            let expected = batch.slice(range.start, range.len());
            assert_eq!(stats.unwrap().rows as usize, range.len());
            assert_eq!(reader.read(&block).unwrap().batch, expected);
            assert_eq!(block, block_of(&expected, Codec::None, false));
            let mut stream = StreamReader::try_new(&block[HEADER..], None).unwrap();
            assert_eq!(stream.next().unwrap().unwrap(), expected);
        }
    }
}

#[test]
fn ranges_and_writers_must_fit() {
    let batch = all_types(10);
    let mut writer = BlockWriter::new(batch.schema(), Codec::Lz4).unwrap();
    let rows = writer.rows(&batch).unwrap();
    let mut out = vec![7];
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..11, 11..11, 5..4] {
        let error = writer
            .write_rows(&rows, range, false, &mut out)
            .unwrap_err();
        assert!(matches!(error, BlockError::Schema(_)), "{error}");
    }
    let schema = Arc::new(batch.schema().as_ref().clone());
    let mut other = BlockWriter::new(schema, Codec::Lz4).unwrap();
    let error = other.write_rows(&rows, 0..10, false, &mut out).unwrap_err();
    assert!(matches!(error, BlockError::Schema(_)), "{error}");
    assert_eq!(out, [7]);
}
