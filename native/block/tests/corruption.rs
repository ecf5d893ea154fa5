//! Changed and truncated blocks, and headers that lie, are errors: never a panic, wrong rows or a
//! large allocation.
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
mod watched;

use std::sync::Arc;

use arrow_array::Int32Array;
use comet_block::{BlockHeader, BlockReader, BlockWriter, Codec};
use common::{CODECS, HEADER, batch_of, block_of, fix_checksum, small};
use watched::{corrupt, read_within};

#[test]
fn every_flipped_bit_is_found() {
    let batch = small();
    let mut blocks = CODECS.map(|codec| block_of(&batch, codec, true)).to_vec();
    blocks.push(end_marker());
    for block in blocks {
        let mut reader = BlockReader::new(batch.schema()).unwrap();
        reader.read(&block).unwrap();
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            corrupt(reader.read(&flipped));
            // More bytes behind the block, so that a longer stored length can be read.
            flipped.extend_from_slice(&block);
            corrupt(reader.read(&flipped));
        }
        reader.read(&block).unwrap();
    }
}

fn end_marker() -> Vec<u8> {
    let mut block = Vec::new();
    BlockWriter::new(small().schema(), Codec::Lz4)
        .unwrap()
        .write_end(&mut block);
    block
}

#[test]
fn every_truncation_is_found() {
    for codec in CODECS {
        let block = block_of(&small(), codec, true);
        for length in 0..block.len() {
            let message = corrupt(read_within(small().schema(), &block[..length], 4096));
            assert!(message.contains("truncated"), "{message}");
        }
    }
}

#[test]
fn messages_tell_expected_and_found() {
    let block = block_of(&small(), Codec::Lz4, true);
    let other = batch_of(vec![Arc::new(Int32Array::from(vec![1]))]);
    let message = corrupt(read_within(other.schema(), &block, 4096));
    assert!(message.contains("expected schema fingerprint"), "{message}");
    for (at, expected) in [
        (0, "expected magic [43, 42], found [00, 42]"),
        (2, "format version: expected 1, found 0"),
        (3, "payload kind: expected 1, 3 or 4, found 0"),
        (HEADER, "expected checksum"),
    ] {
        let mut changed = block.clone();
        changed[at] = 0;
        let message = corrupt(read_within(small().schema(), &changed, 4096));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn header_fields_out_of_range_are_refused() {
    let block = block_of(&small(), Codec::Lz4, true);
    // Position and a value that no writer produces there.
    for (at, value) in [
        (2, 2),
        (3, 2),
        (3, 5),
        (4, 4),
        (5, 7),
        (6, 1),
        (7, 1),
        (16, 21),
        (20, 1),
        (31, 0x80),
        (39, 0x80),
    ] {
        let mut changed = block.clone();
        changed[at] = value;
        fix_checksum(&mut changed);
        corrupt(read_within(small().schema(), &changed, 1 << 16));
    }
    for (at, value) in [(3, 3), (3, 4), (5, 0), (5, 3), (16, 1), (24, 1), (32, 1)] {
        let mut changed = end_marker();
        changed[at] = value;
        changed.push(0);
        fix_checksum(&mut changed[..HEADER]);
        corrupt(read_within(small().schema(), &changed, 4096));
    }
}

#[test]
fn raw_lengths_that_the_stored_bytes_do_not_justify_are_refused() {
    let lengths = [
        1,
        39,
        1 << 16,
        1 << 20,
        1 << 31,
        1 << 32,
        1 << 40,
        u64::MAX >> 1,
        u64::MAX,
    ];
    for codec in CODECS {
        let block = block_of(&small(), codec, true);
        let raw = BlockHeader::parse(&block).unwrap().raw_length();
        for length in lengths.into_iter().chain([raw - 1, raw + 1]) {
            let mut changed = block.clone();
            changed[24..32].copy_from_slice(&length.to_le_bytes());
            fix_checksum(&mut changed);
            // What lz4 could expand the block to is the loosest of the bounds.
            corrupt(read_within(
                small().schema(),
                &changed,
                block.len() * 255 + 4096,
            ));
        }
        for length in lengths {
            let mut changed = block.clone();
            changed[32..40].copy_from_slice(&length.to_le_bytes());
            let end = changed.len().min(HEADER + length.min(1 << 30) as usize);
            fix_checksum(&mut changed[..end]);
            corrupt(read_within(small().schema(), &changed, 1 << 16));
        }
    }
}

#[test]
fn trailing_zstd_frames_are_refused() {
    let mut block = block_of(&small(), Codec::Zstd { level: 1 }, true);
    block.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    let stored = (block.len() - HEADER) as u64;
    block[32..40].copy_from_slice(&stored.to_le_bytes());
    fix_checksum(&mut block);
    let message = corrupt(read_within(small().schema(), &block, 1 << 16));
    assert!(message.contains("zstd frame"), "{message}");
}
