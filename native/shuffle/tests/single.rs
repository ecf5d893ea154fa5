//! One partition: what waits, and what it is charged with.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::sync::atomic::Ordering;

use comet_block::Codec;
use comet_shuffle_writer::{ShuffleError, ShuffleWriterOptions, SinglePartitionShuffleWriter};
use common::{CountingPool, batch, ids, options, read, schema};

const BUFFER: usize = 4096;

fn small(directory: &tempfile::TempDir) -> ShuffleWriterOptions {
    let mut options = options(directory.path());
    options.codec = Codec::None;
    options.write_buffer_size = BUFFER;
    options.reservation_step = 1;
    options
}

fn blocks(options: &ShuffleWriterOptions, lengths: &[u64]) -> Vec<usize> {
    let blocks = read(&options.data_path, &schema(), lengths);
    blocks[0].iter().map(|block| block.num_rows()).collect()
}

#[test]
fn rows_that_wait_are_charged() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let options = small(&directory);
    let mut writer =
        SinglePartitionShuffleWriter::new(schema(), pool.register(), options.clone()).unwrap();
    let whole = batch(0, 1000);
    let bytes = whole.get_array_memory_size() / 2;
    writer.insert_batch(&whole.slice(0, 10)).unwrap();
    let used = writer.used();
    assert!(used > bytes, "a slice pins all of its buffers");
    assert_eq!(pool.held(), used);
    writer.insert_batch(&whole.slice(10, 10)).unwrap();
    assert_eq!(writer.used(), used, "the same buffers are pinned once");
    for n in 1..20 {
        writer.insert_batch(&batch(n * 1000, 1000)).unwrap();
    }
    // 8192 rows were a block, and those that wait are less.
    assert!(writer.used() < 16 * bytes + (4 << 20));
    let (output, metrics) = writer.finish().unwrap();
    assert_eq!((pool.held(), metrics.rows), (0, 19_020));
    assert_eq!(blocks(&options, &output.lengths), [8192, 8192, 2636]);
    assert!(metrics.peak_buffered_bytes > 4 * bytes as u64);
}

#[test]
fn without_memory_rows_do_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let options = small(&directory);
    let mut writer =
        SinglePartitionShuffleWriter::new(schema(), pool.register(), options.clone()).unwrap();
    for n in 0..3 {
        writer.insert_batch(&batch(n * 1000, 1000)).unwrap();
    }
    // Nothing more: the three batches have to be a block before the next one can wait.
    pool.limit.store(pool.held(), Ordering::SeqCst);
    writer.insert_batch(&batch(3000, 1000)).unwrap();
    // Enough to write these rows, but not to let them wait.
    pool.limit.fetch_add(300_000, Ordering::SeqCst);
    let large = batch(4000, 8000);
    writer.insert_batch(&large).unwrap();
    writer.insert_batch(&batch(12_000, 10)).unwrap();
    let (output, _) = writer.finish().unwrap();
    assert_eq!(pool.held(), 0);
    assert_eq!(blocks(&options, &output.lengths)[..2], [3000, 1000]);
    let rows = ids(&options.data_path, &output.lengths);
    assert_eq!(rows[0], (0..12_010).collect::<Vec<_>>());
}

#[test]
fn a_batch_that_cannot_even_be_written_fails() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(BUFFER);
    let options = small(&directory);
    let mut writer =
        SinglePartitionShuffleWriter::new(schema(), pool.register(), options.clone()).unwrap();
    let error = writer.insert_batch(&batch(0, 1000)).unwrap_err();
    assert!(matches!(error, ShuffleError::Memory(error) if error.is_denied()));
    drop(writer);
    assert_eq!(pool.held(), 0);
    assert!(!options.data_path.exists());
}
