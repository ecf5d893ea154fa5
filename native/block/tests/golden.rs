//! Blocks that were written once and must stay readable, byte for byte in `tests/golden`.
//!
//! `COMET_REGENERATE_GOLDEN=name cargo test -p comet-block --test golden` writes one of the files
//! anew. That is only right together with a new format version: blocks of this version may be in
//! files and on their way.
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

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, BinaryArray, Decimal128Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use comet_block::{BlockHeader, BlockReader, BlockWriter, Codec, PayloadKind};
use common::{CODECS, HEADER, block_of};

fn batch() -> RecordBatch {
    let ids = Int64Array::from_iter((0..40_i64).map(|row| (row % 5 != 2).then_some(row * 1000)));
    let prices = Decimal128Array::from_iter_values((0..40_i128).map(|row| row * 99 - 500))
        .with_precision_and_scale(12, 2)
        .unwrap();
    let texts = BinaryArray::from_iter((0..40).map(|row| match row % 4 {
        0 => None,
        1 => Some(b"".as_slice()),
        2 => Some(b"golden".as_slice()),
        _ => Some(b"\xff\xfe not UTF-8".as_slice()),
    }));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..40 {
        (0..row % 3).for_each(|item| lists.values().append_value(item));
        lists.append(row % 7 != 0);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(ids),
        Arc::new(prices),
        Arc::new(texts),
        Arc::new(lists.finish()),
    ];
    let text = Field::new("text", DataType::Binary, true)
        .with_metadata([("spark.type".to_owned(), "string".to_owned())].into());
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("price", DataType::Decimal128(12, 2), false),
        text,
        Field::new("list", columns[3].data_type().clone(), true),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn end_marker() -> Vec<u8> {
    let mut block = Vec::new();
    BlockWriter::new(batch().schema(), Codec::Lz4)
        .unwrap()
        .write_end(&mut block);
    block
}

fn file_name(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "none",
        Codec::Lz4 => "lz4",
        Codec::Zstd { .. } => "zstd",
        Codec::Snappy => "snappy",
    }
}

/// The bytes of a golden file, which `block` becomes if it is to be made anew.
fn golden(name: &str, block: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "golden"]
        .iter()
        .collect();
    let path = path.join(format!("{name}.bin"));
    if std::env::var_os("COMET_REGENERATE_GOLDEN").is_some_and(|value| value == name) {
        std::fs::write(&path, block()).unwrap();
    }
    std::fs::read(&path).unwrap()
}

/// A golden block of a whole stream. It is from before small blocks left messages out.
fn stream(codec: Codec) -> Vec<u8> {
    golden(file_name(codec), || {
        panic!("streams of so few rows are not written")
    })
}

/// A golden block as small ones are written.
fn small(codec: Codec) -> Vec<u8> {
    let name = format!("small_{}", file_name(codec));
    golden(&name, || block_of(&batch(), codec, true))
}

fn small_kind(codec: Codec) -> PayloadKind {
    if codec == Codec::None {
        PayloadKind::IpcBody
    } else {
        PayloadKind::IpcBatch
    }
}

#[test]
fn old_blocks_stay_readable() {
    for codec in CODECS {
        for (block, kind) in [
            (stream(codec), PayloadKind::Ipc),
            (small(codec), small_kind(codec)),
        ] {
            let header = BlockHeader::parse(&block).unwrap();
            assert_eq!(header.codec_id(), codec.id());
            assert_eq!(header.rows(), 40);
            assert_eq!(header.kind(), kind);
            let mut reader = BlockReader::new(batch().schema()).unwrap();
            let read = reader.read(&block).unwrap();
            assert_eq!(read.batch, batch());
            assert_eq!(read.length, block.len());
            assert!(read.last);
        }
    }
    let end = golden("end", end_marker);
    let read = BlockReader::new(batch().schema())
        .unwrap()
        .read(&end)
        .unwrap();
    assert_eq!(
        (read.batch.num_rows(), read.length, read.last),
        (0, HEADER, true)
    );
}

#[test]
fn same_bytes_are_written() {
    assert_eq!(small(Codec::None), block_of(&batch(), Codec::None, true));
    assert_eq!(golden("end", end_marker), end_marker());
}

#[test]
fn header_bytes_are_pinned() {
    let end = golden("end", end_marker);
    let fingerprint = crc32c::crc32c(
        b"<2:id:i64?5:price:decimal128(12,2)!4:text:binary?4:list:list<4:item:i32?>?>",
    );
    let mut expected = b"CB\x01\x01\x00\x01\x00\x00".to_vec();
    expected.extend_from_slice(&fingerprint.to_le_bytes());
    expected.extend_from_slice(&[0; 28]);
    common::fix_checksum(&mut expected);
    assert_eq!(end, expected);
    for codec in CODECS {
        let small_kind = if codec == Codec::None { 4 } else { 3 };
        for (block, kind) in [(stream(codec), 1), (small(codec), small_kind)] {
            assert_eq!(block[..8], [b'C', b'B', 1, kind, codec.id(), 1, 0, 0]);
            assert_eq!(block[8..12], expected[8..12]);
            assert_eq!(block[16..24], [40, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(block[32..40], (block.len() as u64 - 40).to_le_bytes());
        }
    }
}
