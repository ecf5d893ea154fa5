//! What is written is what is read.
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

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, BinaryArray, Float64Array, RecordBatch, RecordBatchOptions};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_ipc::reader::StreamReader;
use arrow_schema::Schema;
use comet_block::{BlockHeader, BlockReader, BlockWriter, Codec};
use common::{CODECS, HEADER, all_null, all_types, batch_of, block_of};

fn round_trip(batch: &RecordBatch, codec: Codec) -> RecordBatch {
    let block = block_of(batch, codec, true);
    let mut reader = BlockReader::new(batch.schema()).unwrap();
    let decoded = reader.read(&block).unwrap();
    assert_eq!(decoded.length, block.len());
    assert!(decoded.last);
    assert_eq!(&decoded.batch, batch, "{codec:?}");
    decoded.batch
}

#[test]
fn every_type_in_every_codec() {
    for codec in CODECS {
        for rows in [0, 1, 2, 7, 8, 9, 64, 1000] {
            round_trip(&all_types(rows), codec);
        }
    }
}

#[test]
fn each_type_by_itself() {
    for rows in [0, 1, 33] {
        for column in all_types(rows).columns() {
            round_trip(&batch_of(vec![column.clone()]), Codec::Lz4);
        }
    }
}

#[test]
fn all_values_null() {
    for codec in CODECS {
        round_trip(&all_null(&all_types(0).schema(), 100), codec);
    }
}

#[test]
fn slices_write_only_their_rows() {
    let batch = all_types(1000);
    for (offset, length) in [(0, 10), (3, 100), (8, 64), (991, 9), (1000, 0)] {
        let slice = batch.slice(offset, length);
        round_trip(&slice, Codec::Zstd { level: 3 });
        let whole = block_of(&slice, Codec::None, false).len();
        assert!(whole < 8000 + length * 600, "{length} rows: {whole} bytes");
    }
}

#[test]
fn rows_without_columns() {
    let schema = Arc::new(Schema::empty());
    for rows in [0, 1, 8192] {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), vec![], &options).unwrap();
        for codec in CODECS {
            assert_eq!(round_trip(&batch, codec).num_rows(), rows);
        }
    }
}

#[test]
fn carried_values_keep_their_bits() {
    let bits = [
        0x7ff8_0000_dead_beef,
        0x8000_0000_0000_0000,
        0xfff0_0000_0000_0000,
    ];
    let floats = Float64Array::from_iter_values(bits.map(f64::from_bits));
    let invalid = BinaryArray::from_iter_values([b"\xff\xfe\x80".as_slice(), b"", b"\xc3\x28"]);
    let batch = batch_of(vec![Arc::new(floats), Arc::new(invalid.clone())]);
    for codec in CODECS {
        let decoded = round_trip(&batch, codec);
        let floats = decoded.column(0).as_primitive::<Float64Type>();
        assert_eq!(
            floats
                .values()
                .iter()
                .map(|v| v.to_bits())
                .collect::<Vec<_>>(),
            bits
        );
        assert_eq!(decoded.column(1).as_binary::<i32>(), &invalid);
    }
}

#[test]
fn arrays_start_at_offset_0_of_one_allocation() {
    let batch = all_types(1000);
    for codec in CODECS {
        let decoded = round_trip(&batch.slice(3, 900), codec);
        let (start, end) = (usize::MAX, 0);
        let mut range = start..end;
        for column in decoded.columns() {
            visit(&column.to_data(), &mut range);
        }
        let block = block_of(&batch.slice(3, 900), codec, false);
        let raw = BlockHeader::parse(&block).unwrap().raw_length() as usize;
        assert!(range.end - range.start <= raw, "a buffer was copied");
    }
}

fn visit(data: &ArrayData, range: &mut Range<usize>) {
    assert_eq!(data.offset(), 0);
    assert!(data.nulls().is_none_or(|nulls| nulls.offset() == 0));
    let nulls = data.nulls().map(NullBuffer::buffer);
    for buffer in data
        .buffers()
        .iter()
        .chain(nulls)
        .filter(|buffer| !buffer.is_empty())
    {
        let start = buffer.as_ptr() as usize;
        range.start = range.start.min(start);
        range.end = range.end.max(start + buffer.len());
    }
    data.child_data()
        .iter()
        .for_each(|child| visit(child, range));
}

#[test]
fn blocks_concatenate() {
    let batches = [all_types(10), all_types(0), all_types(1000), all_types(3)];
    let mut partition = Vec::new();
    for (index, codec) in CODECS.into_iter().enumerate() {
        let mut writer = BlockWriter::new(batches[0].schema(), codec).unwrap();
        for batch in &batches {
            writer.write(batch, false, &mut partition).unwrap();
        }
        if index % 2 == 0 {
            writer.write_end(&mut partition);
        }
    }
    let mut reader = BlockReader::new(batches[0].schema()).unwrap();
    let mut rest = partition.as_slice();
    let (mut read, mut ends) = (Vec::new(), 0);
    while !rest.is_empty() {
        let block = reader.read(rest).unwrap();
        rest = &rest[block.length..];
        if block.last {
            assert_eq!((block.length, block.batch.num_rows()), (HEADER, 0));
            ends += 1;
        } else {
            read.push(block.batch);
        }
    }
    assert_eq!(ends, 2);
    assert_eq!(
        read,
        batches.iter().cycle().take(16).cloned().collect::<Vec<_>>()
    );
}

#[test]
fn payload_is_an_arrow_stream() {
    let batch = all_types(5000);
    let block = block_of(&batch, Codec::None, true);
    let mut stream = StreamReader::try_new(&block[HEADER..], None).unwrap();
    assert_eq!(stream.next().unwrap().unwrap(), batch);
    assert!(stream.next().is_none());
}
