//! Blocks whose checksum is right and whose payload isn't what a writer makes.
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

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::Schema;
use comet_block::Codec;
use common::{
    CODECS, HEADER, IPC, IPC_BATCH, IPC_BODY, KIND, all_types, batch_of, block_of, fix_checksum,
    small, stream_of, with_kind, with_payload,
};
use proptest::prelude::*;
use watched::{corrupt, read_within};

#[test]
fn payloads_of_other_arrow_writers_are_read() {
    let batch = all_types(20);
    let block = block_of(&batch, Codec::None, true);
    // Other alignment, and an end-of-stream mark.
    let payload = stream_of(std::slice::from_ref(&batch), IpcWriteOptions::default());
    let read = read_within(batch.schema(), &with_kind(&block, IPC, &payload), 1 << 16).unwrap();
    assert_eq!(read.batch, batch);
    // A reader whose schema has other metadata.
    let schema = batch.schema();
    let metadata = HashMap::from([("spark.type".to_owned(), "string".to_owned())]);
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    let fields: Vec<_> = fields
        .map(|field| field.with_metadata(metadata.clone()))
        .collect();
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
    let read = read_within(schema, &block, 1 << 16).unwrap();
    assert_eq!(read.batch.columns(), batch.columns());
}

#[test]
fn payloads_that_are_not_one_batch_of_the_schema_are_refused() {
    let batch = all_types(20);
    let block = block_of(&batch, Codec::None, true);
    let options = IpcWriteOptions::default;
    let plain = stream_of(std::slice::from_ref(&batch), options());
    let two = stream_of(&[batch.clone(), batch.clone()], options());
    let none = plain[..plain.len() - 8].to_vec();
    let mut longer = none.clone();
    longer.extend_from_slice(&[0; 16]);
    for payload in [
        two,
        longer,
        none[..none.len() - 1].to_vec(),
        vec![0; 100],
        vec![0xff; 100],
    ] {
        corrupt(read_within(
            batch.schema(),
            &with_kind(&block, IPC, &payload),
            1 << 16,
        ));
    }
    // Every column replaced by another one, renamed, or made mandatory, under the fingerprint of
    // the right schema.
    for index in 0..batch.num_columns() {
        let field = batch.schema().field(index).clone();
        let column = batch.column(index).clone();
        let other = batch.column((index + 1) % batch.num_columns()).clone();
        let single = batch_of(vec![column.clone()]);
        let block = block_of(&single, Codec::None, true);
        let renamed = field.clone().with_name("other");
        let renamed = Arc::new(Schema::new(vec![renamed]));
        let renamed = RecordBatch::try_new(renamed, vec![column]).unwrap();
        for wrong in [
            batch_of(vec![other]),
            renamed,
            batch.clone(),
            batch.slice(0, 3),
        ] {
            let payload = stream_of(&[wrong], options());
            corrupt(read_within(
                single.schema(),
                &with_kind(&block, IPC, &payload),
                1 << 16,
            ));
        }
    }
}

#[test]
fn a_kind_that_lies_is_corrupt() {
    for block in each_kind(&small()) {
        for kind in [IPC, IPC_BATCH, IPC_BODY] {
            let read = read_within(
                small().schema(),
                &with_kind(&block, kind, &block[HEADER..]),
                1 << 16,
            );
            if kind == block[KIND] {
                assert_eq!(read.unwrap().batch, small());
            } else {
                corrupt(read);
            }
        }
    }
}

#[test]
fn bodies_with_other_numbers_are_corrupt() {
    // 20 rows: null count 1; null count 1, 76 bytes; 3 bytes of padding.
    let block = block_of(&small(), Codec::None, true);
    assert_eq!(block[HEADER..HEADER + 8], [1, 1, 76, 0, 0, 0, 0, 0]);
    let payload = &block[HEADER..];
    let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0x1f];
    let changes: [&[u8]; 9] = [
        &[0, 1, 76, 0, 0, 0, 0, 0],
        &[21, 1, 76, 0, 0, 0, 0, 0],
        &[1, 1, 68, 0, 0, 0, 0, 0],
        &[1, 1, 84, 0, 0, 0, 0, 0],
        &[1, 1, 76, 0, 0, 0, 0, 1],
        &[1, 1, 76],
        &[0x80; 8],
        &[0xff; 16],
        &[&[1, 1], longest.as_slice()].concat(),
    ];
    for change in changes {
        let changed = [change, &payload[8..]].concat();
        corrupt(read_within(
            small().schema(),
            &with_payload(&block, &changed),
            1 << 16,
        ));
    }
    for length in 1..payload.len() {
        corrupt(read_within(
            small().schema(),
            &with_payload(&block, &payload[..length]),
            1 << 16,
        ));
    }
}

#[test]
fn compressed_bodies_are_refused() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let schema = Arc::new(Schema::empty());
    let batch = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    let block = block_of(&batch, Codec::None, true);
    let options = IpcWriteOptions::default();
    let options = options
        .try_with_compression(Some(CompressionType::LZ4_FRAME))
        .unwrap();
    let payload = stream_of(std::slice::from_ref(&batch), options);
    let message = corrupt(read_within(
        batch.schema(),
        &with_kind(&block, IPC, &payload),
        1 << 16,
    ));
    assert!(message.contains("compressed record batch"), "{message}");
}

/// Where the metadata of a block lies: its messages, or the numbers of a body (at most 8 bytes for
/// a column in these tests).
fn metadata_length(block: &[u8], columns: usize) -> usize {
    let payload = &block[HEADER..];
    let length =
        |at: usize| u32::from_le_bytes(payload[at + 4..at + 8].try_into().unwrap()) as usize + 8;
    match block[KIND] {
        IPC => length(0) + length(length(0)),
        IPC_BATCH => length(0),
        _ => payload.len().min(8 * columns),
    }
}

/// Uncompressed blocks of the batch: a whole stream, a record batch message, and a body.
fn each_kind(batch: &RecordBatch) -> [Vec<u8>; 3] {
    let block = block_of(batch, Codec::None, true);
    assert_eq!(block[KIND], IPC_BODY);
    let stream = stream_of(std::slice::from_ref(batch), IpcWriteOptions::default());
    let schema = u32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize + 8;
    [
        with_kind(&block, IPC, &stream),
        with_kind(&block, IPC_BATCH, &stream[schema..]),
        block,
    ]
}

#[test]
fn hostile_words_in_messages_are_errors_or_valid() {
    for (batch, block) in [small(), all_types(9)]
        .iter()
        .flat_map(|batch| each_kind(batch).map(|block| (batch.clone(), block)))
    {
        for at in (0..metadata_length(&block, batch.num_columns())).step_by(4) {
            for word in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x0100_0000] {
                let mut changed = block.clone();
                changed[HEADER + at..HEADER + at + 4].copy_from_slice(&u32::to_le_bytes(word));
                fix_checksum(&mut changed);
                let _ = read_within(batch.schema(), &changed, 1 << 20);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn garbage_is_corrupt(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        corrupt(read_within(small().schema(), &bytes, 4096));
    }

    #[test]
    fn garbage_behind_a_right_header_is_corrupt(
        codec in 0..4_u8,
        stored in prop::collection::vec(any::<u8>(), 1..2000),
        raw in any::<u64>(),
        shift in 20..64_u32,
    ) {
        let mut block = block_of(&small(), Codec::None, true);
        block.truncate(HEADER);
        block.extend_from_slice(&stored);
        block[4] = codec;
        block[24..32].copy_from_slice(&(raw >> shift).to_le_bytes());
        block[32..40].copy_from_slice(&(stored.len() as u64).to_le_bytes());
        fix_checksum(&mut block);
        corrupt(read_within(small().schema(), &block, stored.len() * 255 + 4096));
    }

    #[test]
    fn hostile_payloads_are_errors_or_valid(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        codec in prop::sample::select(CODECS.to_vec()),
        body in any::<bool>(),
        kind in 0..3_usize,
    ) {
        let batch = all_types(9);
        let block = each_kind(&batch)[kind].clone();
        let metadata = metadata_length(&block, batch.num_columns());
        let mut payload = block[HEADER..].to_vec();
        let range = if body { payload.len() } else { metadata };
        for (index, value) in &changes {
            payload[index.index(range)] = *value;
        }
        let _ = read_within(batch.schema(), &with_payload(&block, &payload), 1 << 20);
        // The same bytes changed in a compressed block break the codec's data.
        let mut block = block_of(&batch, codec, true);
        let stored = block.len() - HEADER;
        for (index, value) in &changes {
            block[HEADER + index.index(stored)] = *value;
        }
        fix_checksum(&mut block);
        let _ = read_within(batch.schema(), &block, 1 << 20);
    }
}
