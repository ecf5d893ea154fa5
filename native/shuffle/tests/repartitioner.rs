//! Staging, spilling and merging, over a pool that counts.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::panic
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{BinaryArray, RecordBatch};
use comet_shuffle_writer::ShuffleError;
use common::{CountingPool, batch, ids, options, read, repartitioner, schema};

fn files(directory: &tempfile::TempDir) -> usize {
    std::fs::read_dir(directory.path()).unwrap().count()
}

#[test]
fn small_batches_share_one_reservation_step() {
    for (step, expected) in [(1 << 20, 1), (1, 40)] {
        let directory = tempfile::tempdir().unwrap();
        let pool = CountingPool::new(usize::MAX);
        let mut options = options(directory.path());
        options.reservation_step = step;
        let mut writer = repartitioner(&pool, 10, options);
        let batches: Vec<_> = (0..40).map(|n| batch(n * 100, 100)).collect();
        for batch in &batches {
            writer.insert_batch(batch).unwrap();
        }
        assert_eq!(pool.grows(), expected, "step {step}");
        assert!(writer.used() <= pool.held());
        writer.finish().unwrap();
        assert_eq!((pool.shrinks.load(Ordering::SeqCst), pool.held()), (1, 0));
    }
}

#[test]
fn used_is_the_exact_resident_figure() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let mut writer = repartitioner(&pool, 10, options(directory.path()));
    let whole = batch(0, 1000);
    writer.insert_batch(&whole.slice(0, 100)).unwrap();
    let first = writer.buffered_bytes();
    assert!(
        first >= whole.get_array_memory_size() / 2,
        "a slice pins all of its buffers"
    );
    let overhead = writer.used() - first;
    for slice in 1..10 {
        writer.insert_batch(&whole.slice(slice * 100, 100)).unwrap();
        // Only the row references: 100 rows of 12 bytes.
        assert_eq!(writer.buffered_bytes(), first + slice * 1200);
        // And 16 bytes a row that gathering will take.
        let gathering = slice * 1600;
        assert_eq!(
            writer.used(),
            writer.buffered_bytes() + overhead + gathering
        );
    }
}

#[test]
fn max_buffer_bytes_triggers_spill_without_memory_pressure() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let mut options = options(directory.path());
    options.max_buffer_bytes = Some(100_000);
    let mut writer = repartitioner(&pool, 10, options);
    for n in 0..40 {
        writer.insert_batch(&batch(n * 1000, 1000)).unwrap();
        assert!(writer.buffered_bytes() < 100_000);
    }
    let (_, metrics) = writer.finish().unwrap();
    assert!(metrics.spills > 1);
    assert!(metrics.memory_bytes_spilled >= metrics.spills * 100_000);
    assert!(metrics.disk_bytes_spilled > 0);
    assert_eq!((pool.held(), files(&directory)), (0, 1));
}

#[test]
fn max_buffer_bytes_none_leaves_spilling_to_memory_pressure() {
    for (limit, spills) in [(usize::MAX, false), (300_000, true)] {
        let directory = tempfile::tempdir().unwrap();
        let pool = CountingPool::new(limit);
        let mut options = options(directory.path());
        options.write_buffer_size = 4096;
        let mut writer = repartitioner(&pool, 10, options);
        for n in 0..40 {
            writer.insert_batch(&batch(n * 1000, 1000)).unwrap();
        }
        let (_, metrics) = writer.finish().unwrap();
        assert_eq!(metrics.spills > 0, spills);
        assert_eq!(pool.held(), 0);
    }
}

#[test]
fn max_buffer_bytes_preserves_output() {
    let mut outputs = Vec::new();
    for limit in [None, Some(1), Some(100_000), Some(1 << 30)] {
        let directory = tempfile::tempdir().unwrap();
        let pool = CountingPool::new(usize::MAX);
        let mut options = options(directory.path());
        options.max_buffer_bytes = limit;
        let path = options.data_path.clone();
        let mut writer = repartitioner(&pool, 17, options);
        for n in 0..20 {
            writer.insert_batch(&batch(n * 1000, 1000)).unwrap();
        }
        let (output, _) = writer.finish().unwrap();
        outputs.push(ids(&path, &output.lengths));
    }
    assert_eq!(outputs[0].iter().map(Vec::len).sum::<usize>(), 20_000);
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

#[test]
fn offsets_match_data_file_with_spilled_and_in_memory_batches() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let options = options(directory.path());
    let path = options.data_path.clone();
    let mut writer = repartitioner(&pool, 2000, options);
    let spill = writer.spill_handle();
    let batches: Vec<_> = (0..9).map(|n| batch(n * 700, 700)).collect();
    for (n, batch) in batches.iter().enumerate() {
        writer.insert_batch(batch).unwrap();
        if n % 3 == 1 {
            assert!(spill.spill(1).unwrap() > 0);
        }
    }
    let (output, metrics) = writer.finish().unwrap();
    assert_eq!(metrics.spills, 3);
    let partitions = read(&path, &schema(), &output.lengths);
    let mut rows = 0;
    let all = arrow_select::concat::concat_batches(&schema(), &batches).unwrap();
    for (blocks, length) in partitions.iter().zip(&output.lengths) {
        assert_eq!(blocks.is_empty(), *length == 0);
        for block in blocks {
            rows += block.num_rows();
            for row in 0..block.num_rows() {
                let id = block.column(0).slice(row, 1);
                let id = id
                    .as_any()
                    .downcast_ref::<arrow_array::Int32Array>()
                    .unwrap();
                assert_eq!(
                    block.slice(row, 1),
                    all.slice(usize::try_from(id.value(0)).unwrap(), 1)
                );
            }
        }
    }
    assert_eq!(rows, 6300);
    assert_eq!((files(&directory), spill.spill(1).unwrap()), (1, 0));
}

#[test]
fn a_denied_step_is_retried_exactly_before_anything_spills() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(300_000);
    let mut options = options(directory.path());
    options.reservation_step = 1 << 20;
    let mut writer = repartitioner(&pool, 10, options);
    writer.insert_batch(&batch(0, 1000)).unwrap();
    assert_eq!((pool.grows(), pool.held()), (2, writer.used()));
    let (_, metrics) = writer.finish().unwrap();
    assert_eq!(metrics.spills, 0);
}

#[test]
fn batches_beyond_32_bit_offsets_make_no_group() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let options = options(directory.path());
    let path = options.data_path.clone();
    let mut writer = repartitioner(&pool, 10, options);
    // Batches that share their buffers are a group when they have 65,536 rows: more than 2 GiB here.
    let texts = BinaryArray::from_iter_values((0..64).map(|n| vec![n; 33 << 10]));
    let mut columns = batch(0, 64).columns().to_vec();
    columns[1] = Arc::new(texts);
    let shared = RecordBatch::try_new(schema(), columns).unwrap();
    for _ in 0..1025 {
        writer.insert_batch(&shared).unwrap();
    }
    let (output, _) = writer.finish().unwrap();
    let ids: Vec<_> = ids(&path, &output.lengths).into_iter().flatten().collect();
    assert_eq!(ids.len(), 64 * 1025);
    assert_eq!(ids.iter().filter(|id| **id == 63).count(), 1025);
}

#[test]
fn memory_denied_with_nothing_to_spill_is_an_error_that_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(1000);
    let mut writer = repartitioner(&pool, 10, options(directory.path()));
    let error = writer.insert_batch(&batch(0, 1000)).unwrap_err();
    assert!(matches!(error, ShuffleError::Memory(error) if error.is_denied()));
    drop(writer);
    assert_eq!((pool.held(), files(&directory)), (0, 0));
}

#[test]
fn dropping_and_cancelling_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(usize::MAX);
    let blocks = Arc::new(AtomicUsize::new(0));
    let mut options = options(directory.path());
    let asked = Arc::clone(&blocks);
    options.is_cancelled = Arc::new(move || asked.fetch_add(1, Ordering::SeqCst) == 15);
    let mut writer = repartitioner(&pool, 10, options.clone());
    writer.insert_batch(&batch(0, 1000)).unwrap();
    writer.spill_handle().spill(1).unwrap();
    assert_eq!((files(&directory), blocks.load(Ordering::SeqCst)), (1, 10));
    writer.insert_batch(&batch(0, 1000)).unwrap();
    assert!(matches!(writer.finish(), Err(ShuffleError::Cancelled)));
    assert_eq!((files(&directory), pool.held()), (0, 0));

    let mut writer = repartitioner(&pool, 10, options);
    writer.insert_batch(&batch(0, 1000)).unwrap();
    writer.spill_handle().spill(1).unwrap();
    drop(writer);
    assert_eq!((files(&directory), pool.held()), (0, 0));
}

#[test]
fn spills_from_other_threads_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pool = CountingPool::new(8_000_000);
    let options = options(directory.path());
    let path = options.data_path.clone();
    let mut writer = repartitioner(&pool, 20, options);
    let spill = writer.spill_handle();
    let whole = batch(0, 50_000);
    let output = std::thread::scope(|scope| {
        for _ in 0..2 {
            let spill = spill.clone();
            scope.spawn(move || {
                for _ in 0..200 {
                    spill.spill(1).unwrap();
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
            });
        }
        for n in 0..100 {
            writer.insert_batch(&whole.slice(n * 500, 500)).unwrap();
        }
        writer.finish().unwrap().0
    });
    let mut all: Vec<_> = ids(&path, &output.lengths).concat();
    all.sort_unstable();
    assert_eq!(all, (0..50_000).collect::<Vec<_>>());
    assert_eq!((pool.held(), files(&directory)), (0, 1));
}

/// The files of a folder that this process has open.
fn open_files(directory: &std::path::Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = open.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    paths.filter(|path| path.starts_with(directory)).count()
}

#[test]
fn spills_of_two_thousand_partitions_open_few_files() {
    let directory = tempfile::tempdir().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let mut options = options(directory.path());
    options.max_buffer_bytes = Some(256 << 10);
    options.is_cancelled = {
        let (most, folder) = (Arc::clone(&most), directory.path().to_owned());
        let blocks = AtomicUsize::new(0);
        Arc::new(move || {
            if blocks.fetch_add(1, Ordering::SeqCst).is_multiple_of(100) {
                most.fetch_max(open_files(&folder), Ordering::SeqCst);
            }
            false
        })
    };
    let pool = CountingPool::new(usize::MAX);
    let mut writer = repartitioner(&pool, 2000, options.clone());
    for n in 0..20 {
        writer.insert_batch(&batch(n * 2000, 2000)).unwrap();
    }
    let (output, metrics) = writer.finish().unwrap();
    assert!(metrics.spills > 3);
    let mut found: Vec<_> = ids(&options.data_path, &output.lengths).concat();
    found.sort_unstable();
    assert_eq!(found, (0..40_000).collect::<Vec<_>>());
    // The spill file, and at the end the data file beside it.
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
}
