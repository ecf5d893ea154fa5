//! What is written is what is read.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]
#![allow(clippy::cast_sign_loss)]

#[allow(dead_code)]
mod common;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field, Schema, UnionFields, UnionMode};
use comet_block::{
    BlockError, BlockHeader, BlockReader, BlockWriter, Codec, PayloadKind, schema_fingerprint,
};
use common::{CODECS, HEADER, all_null, all_types, batch_of, block_of, small};

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
        let mut range = usize::MAX..0;
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
fn header_tells_what_was_written() {
    let batch = small();
    for codec in CODECS {
        let mut block = Vec::new();
        let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
        let stats = writer.write(&batch, false, &mut block).unwrap();
        let header = BlockHeader::parse(&block).unwrap();
        assert_eq!(header.kind(), PayloadKind::Ipc);
        assert_eq!(header.codec_id(), codec.id());
        assert!(!header.is_last());
        assert_eq!(header.fingerprint(), schema_fingerprint(&batch.schema()));
        assert_eq!((header.rows(), stats.rows), (20, 20));
        assert_eq!(header.raw_length(), stats.raw_length);
        assert_eq!(header.stored_length(), stats.stored_length);
        assert_eq!(block.len() as u64, HEADER as u64 + stats.stored_length);
        assert_eq!(
            codec == Codec::None,
            stats.raw_length == stats.stored_length
        );
        header.verify_checksum(&block).unwrap();
    }
}

#[test]
fn bytes_that_do_not_compress_are_stored_plain() {
    let mut state = 1_u64;
    let noise = Int64Array::from_iter_values((0..1_000_000).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) as i64
    }));
    let batch = batch_of(vec![Arc::new(noise)]);
    for codec in [Codec::Lz4, Codec::Snappy] {
        let block = block_of(&batch, codec, false);
        let header = BlockHeader::parse(&block).unwrap();
        assert_eq!(header.codec_id(), 0);
        assert_eq!(block, block_of(&batch, Codec::None, false));
        round_trip(&batch, codec);
    }
}

#[test]
fn payload_is_an_arrow_stream() {
    let batch = all_types(100);
    let block = block_of(&batch, Codec::None, true);
    let mut stream = StreamReader::try_new(&block[HEADER..], None).unwrap();
    assert_eq!(stream.next().unwrap().unwrap(), batch);
    assert!(stream.next().is_none());
}

#[test]
fn writer_keeps_its_scratch() {
    let batch = all_types(1000);
    for codec in CODECS {
        let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
        let mut out = Vec::new();
        writer.write(&batch, false, &mut out).unwrap();
        let size = writer.memory_size();
        for rows in [1000, 1, 500, 0] {
            writer.write(&all_types(rows), false, &mut out).unwrap();
        }
        assert_eq!(writer.memory_size(), size, "{codec:?}");
    }
}

#[test]
fn writer_rejects_what_the_reader_would() {
    let nullable = batch_of(vec![Arc::new(Int64Array::from(vec![Some(1), None]))]);
    let strict = Arc::new(Schema::new(vec![Field::new("c0", DataType::Int64, false)]));
    let mut out = vec![7];
    for schema in [
        strict,
        Arc::new(Schema::empty()),
        small().schema(),
        all_types(0).schema(),
    ] {
        let mut writer = BlockWriter::new(schema, Codec::Lz4).unwrap();
        let error = writer.write(&nullable, false, &mut out).unwrap_err();
        assert!(matches!(error, BlockError::Schema(_)), "{error}");
    }
    assert_eq!(out, [7]);
}

#[test]
fn unsupported_types_and_codecs_are_refused() {
    let union = UnionFields::from_fields(vec![Field::new("a", DataType::Int8, true)]);
    for data_type in [
        DataType::BinaryView,
        DataType::Union(union, UnionMode::Dense),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        DataType::new_list(DataType::Utf8View, true),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("a", data_type, true)]));
        let error = BlockWriter::new(schema.clone(), Codec::None).err();
        assert!(matches!(error, Some(BlockError::Unsupported(_))));
        assert!(matches!(
            BlockReader::new(schema).err(),
            Some(BlockError::Unsupported(_))
        ));
    }
    assert!(matches!(
        Codec::from_id(4, 1),
        Err(BlockError::Unsupported(_))
    ));
    assert!(matches!(
        Codec::from_id(2, 1000),
        Err(BlockError::Unsupported(_))
    ));
    assert!(BlockWriter::new(small().schema(), Codec::Zstd { level: 1000 }).is_err());
    for codec in CODECS {
        assert_eq!(Codec::from_id(codec.id(), 1).unwrap(), codec);
    }
}

#[test]
fn fingerprint_tells_schemas_apart() {
    let mut seen = std::collections::HashSet::new();
    for field in all_types(0).schema().fields() {
        for name in ["a", "b"] {
            for nullable in [false, true] {
                let field = Field::new(name, field.data_type().clone(), nullable);
                assert!(seen.insert(schema_fingerprint(&Schema::new(vec![field]))));
            }
        }
    }
    // Pinned: changing it makes old blocks unreadable.
    assert_eq!(schema_fingerprint(&small().schema()), PINNED);
    assert_eq!(PINNED, crc32c::crc32c(b"<2:c0:i64?2:c1:binary?>"));
}

const PINNED: u32 = 624_154_391;
