//! What reaches the files, and in how many calls.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]
#![allow(clippy::cast_possible_truncation, clippy::panic)]

mod common;

use std::cell::RefCell;
use std::io::{self, Seek, SeekFrom, Write};
use std::rc::Rc;
use std::sync::Arc;

use comet_block::{BlockReader, Codec};
use comet_shuffle_writer::{
    BlockSink, BufBatchWriter, ChecksumAlgorithm, LocalPartitionWriter, Result, ShuffleError,
    ShuffleScratch,
};
use common::{batch, schema};

#[derive(Default)]
struct Sink(Vec<u8>, usize);

impl BlockSink for Sink {
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()> {
        self.0.extend_from_slice(blocks);
        Ok(())
    }

    fn end_partition(&mut self, _partition: usize, _buffered: &[u8]) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.1 += 1;
        Ok(())
    }
}

fn rows_of_blocks(mut rest: &[u8]) -> Vec<(usize, bool)> {
    let mut reader = BlockReader::new(schema()).unwrap();
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let block = reader.read(rest).unwrap();
        rows.push((block.batch.num_rows(), block.last));
        rest = &rest[block.length..];
    }
    rows
}

#[test]
fn passthrough_writes_each_batch_as_its_own_block() {
    let mut scratch = ShuffleScratch::new(schema(), Codec::None).unwrap();
    let mut writer = BufBatchWriter::new_passthrough(Sink::default(), 1 << 20);
    for (rows, last) in [(3, false), (1, false), (100, false), (2, true)] {
        writer.write(&batch(0, rows), last, &mut scratch).unwrap();
    }
    assert!(writer.sink_mut().0.is_empty());
    writer.drain(&mut scratch).unwrap();
    assert_eq!(writer.sink_mut().1, 0, "drain does not flush");
    writer.flush(&mut scratch).unwrap();
    let sink = writer.into_sink();
    assert_eq!(sink.1, 1);
    let wanted = [(3, false), (1, false), (100, false), (2, true)];
    assert_eq!(rows_of_blocks(&sink.0), wanted);
}

#[test]
fn coalescing_joins_and_cuts() {
    let schema = schema();
    let mut scratch = ShuffleScratch::new(Arc::clone(&schema), Codec::None).unwrap();
    let mut writer = BufBatchWriter::new(Sink::default(), 1, schema, 10, usize::MAX);
    for rows in [3, 4, 5, 28] {
        writer.write(&batch(0, rows), false, &mut scratch).unwrap();
    }
    assert_eq!(writer.pending_rows(), 10);
    writer.end(&mut scratch).unwrap();
    writer.flush(&mut scratch).unwrap();
    let blocks = rows_of_blocks(&writer.into_sink().0);
    assert_eq!(blocks, [(10, false), (10, false), (10, false), (10, true)]);
}

#[test]
fn wide_rows_make_smaller_blocks() {
    let schema = schema();
    let mut scratch = ShuffleScratch::new(Arc::clone(&schema), Codec::None).unwrap();
    let mut writer = BufBatchWriter::new(Sink::default(), 1, schema, 100, 1000);
    for rows in [3, 4, 100] {
        writer.write(&batch(0, rows), false, &mut scratch).unwrap();
    }
    assert!(writer.pending_bytes() <= 1000);
    writer.write_pending(&mut scratch).unwrap();
    assert_eq!(writer.pending_rows(), 0);
    writer.end(&mut scratch).unwrap();
    writer.flush(&mut scratch).unwrap();
    let sink = writer.into_sink();
    let (end, blocks) = sink
        .0
        .split_last_chunk::<40>()
        .map(|(blocks, end)| (end, blocks))
        .unwrap();
    assert!(comet_block::BlockHeader::parse(end).unwrap().is_last());
    let blocks = rows_of_blocks(blocks);
    assert_eq!(blocks.iter().map(|(rows, _)| rows).sum::<usize>(), 107);
    assert!(blocks.iter().all(|(rows, last)| *rows <= 25 && !last));
}

#[derive(Default)]
struct Calls {
    writes: usize,
    flushes: usize,
    position: u64,
    lie: u64,
}

struct CountingFile(Rc<RefCell<Calls>>);

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut calls = self.0.borrow_mut();
        calls.writes += 1;
        calls.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flushes += 1;
        Ok(())
    }
}

impl Seek for CountingFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        assert_eq!(to, SeekFrom::Current(0));
        let calls = self.0.borrow();
        Ok(calls.position + calls.lie)
    }
}

fn counting(lie: u64) -> (Rc<RefCell<Calls>>, LocalPartitionWriter<CountingFile>) {
    let calls = Rc::new(RefCell::new(Calls {
        lie,
        ..Calls::default()
    }));
    let file = CountingFile(Rc::clone(&calls));
    let path = "/nonexistent/data".into();
    let writer = LocalPartitionWriter::new(file, path, 1000, ChecksumAlgorithm::Adler32);
    (calls, writer)
}

#[test]
fn one_flush_a_file_and_few_writes() {
    let (calls, output) = counting(0);
    let mut scratch = ShuffleScratch::new(schema(), Codec::None).unwrap();
    let mut writer = BufBatchWriter::new_passthrough(output, 10_000);
    for partition in (0..1000).step_by(2) {
        let copied = writer.copy(333, &mut scratch, |_, bytes| {
            bytes.fill(7);
            Ok(())
        });
        copied.unwrap();
        writer.end_partition(partition, &scratch).unwrap();
    }
    writer.drain(&mut scratch).unwrap();
    let output = writer.into_sink().finish_all().unwrap();
    assert_eq!((output.lengths[0], output.lengths[1]), (333, 0));
    assert_eq!(output.checksums[1], 1, "the checksum of nothing");
    let mut sum = adler2::Adler32::new();
    sum.write_slice(&[7; 333]);
    assert_eq!(output.checksums[998], sum.checksum());
    let calls = calls.borrow();
    assert_eq!((calls.flushes, calls.position), (1, 500 * 333));
    assert!(calls.writes <= 500 * 333 / 9_000, "{} writes", calls.writes);
}

#[test]
fn a_total_that_differs_from_the_position_fails() {
    let (_, mut writer) = counting(1);
    writer.write_blocks(&[7; 333]).unwrap();
    writer.end_partition(0, &[]).unwrap();
    let error = writer.finish_all().unwrap_err();
    assert!(matches!(
        error,
        ShuffleError::Position {
            expected: 333,
            actual: 334,
            ..
        }
    ));
}
