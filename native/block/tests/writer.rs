//! What the writer says about its blocks, and what it refuses.
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

use arrow_array::Int64Array;
use arrow_schema::{DataType, Field, Schema, UnionFields, UnionMode};
use comet_block::{
    BlockError, BlockHeader, BlockReader, BlockWriter, Codec, PayloadKind, schema_fingerprint,
};
use common::{CODECS, HEADER, all_types, batch_of, block_of, small};

#[test]
fn header_tells_what_was_written() {
    let batch = small();
    for codec in CODECS {
        let mut block = Vec::new();
        let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
        let stats = writer.write(&batch, false, &mut block).unwrap();
        let header = BlockHeader::parse(&block).unwrap();
        let small = if codec == Codec::None {
            PayloadKind::IpcBody
        } else {
            PayloadKind::IpcBatch
        };
        assert_eq!(header.kind(), small);
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
        let read = BlockReader::new(batch.schema())
            .unwrap()
            .read(&block)
            .unwrap();
        assert_eq!(read.batch, batch);
    }
}

#[test]
fn writer_keeps_its_scratch() {
    let batch = all_types(1000);
    for codec in CODECS {
        let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
        let mut out = Vec::new();
        // A whole stream, and a body.
        writer.write(&batch, false, &mut out).unwrap();
        writer.write(&all_types(500), false, &mut out).unwrap();
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
