//! Whatever is written how, under whatever memory: every row arrives once, in its partition.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]

#[path = "../common/mod.rs"]
mod common;
mod spark;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef, SortOptions};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;
use comet_block::Codec;
use comet_memory::{FairUnifiedPool, GreedyUnifiedPool, SparkMemory, TaskMemoryPool};
use comet_shuffle_writer::{
    ChecksumAlgorithm, ShuffleError, ShuffleOutput, ShufflePartitioning, ShuffleWriter,
    ShuffleWriterOptions,
};
use common::read;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_expr::expressions::Column;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use spark::MoodySpark;
use values::{KINDS, Random};

/// One write.
#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    /// The columns after the number of the row.
    kinds: Vec<usize>,
    /// The rows of each batch; all are slices of one batch, or batches of their own.
    batches: Vec<usize>,
    slices: bool,
    partitions: usize,
    partitioning: usize,
    limits: Limits,
    codec: Codec,
    checksum: ChecksumAlgorithm,
    trouble: Trouble,
}

#[derive(Debug, Clone)]
struct Limits {
    block_rows: usize,
    block_bytes: usize,
    buffer_bytes: Option<usize>,
    step: usize,
    write_size: usize,
}

#[derive(Debug, Clone)]
struct Trouble {
    fair: bool,
    /// One request in so many is denied, or makes the writer spill; 0 is none.
    deny_one_in: usize,
    spill_one_in: usize,
    /// Whether another thread makes it spill.
    thread: bool,
    /// The cancelled block.
    cancel_at: Option<usize>,
}

fn limits() -> impl Strategy<Value = Limits> {
    let sizes = select(vec![None, Some(1), Some(30_000), Some(300_000)]);
    (
        select(vec![1, 7, 100, 8192]),
        select(vec![1, 2000, 4 << 20]),
        sizes,
        select(vec![0, 1, 5000, 1 << 20]),
        select(vec![1, 4096, 1 << 20]),
    )
        .prop_map(
            |(block_rows, block_bytes, buffer_bytes, step, write_size)| Limits {
                block_rows,
                block_bytes,
                buffer_bytes,
                step,
                write_size,
            },
        )
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let cancelled = prop_oneof![15 => Just(None), 1 => (0..50_usize).prop_map(Some)];
    (
        any::<bool>(),
        select(vec![0, 3, 5, 20]),
        select(vec![0, 2, 5]),
        prop::bool::weighted(0.3),
        cancelled,
    )
        .prop_map(
            |(fair, deny_one_in, spill_one_in, thread, cancel_at)| Trouble {
                fair,
                deny_one_in,
                spill_one_in,
                thread,
                cancel_at,
            },
        )
}

fn cases() -> impl Strategy<Value = Case> {
    let partitions = prop_oneof![Just(1), 2..20_usize, 20..400_usize, Just(5000)];
    let codecs = vec![
        Codec::None,
        Codec::Lz4,
        Codec::Zstd { level: 1 },
        Codec::Snappy,
    ];
    let checksums = vec![
        ChecksumAlgorithm::None,
        ChecksumAlgorithm::Adler32,
        ChecksumAlgorithm::Crc32,
        ChecksumAlgorithm::Crc32c,
    ];
    (
        (any::<u64>(), vec(0..KINDS, 0..4), vec(0..400_usize, 1..12)),
        (
            any::<bool>(),
            partitions,
            select(vec![0, 1, 1, 2, 2, 3, 3, 4, 4]),
            limits(),
        ),
        (select(codecs), select(checksums), trouble()),
    )
        .prop_map(
            |((seed, kinds, batches), (slices, partitions, partitioning, limits), rest)| Case {
                seed,
                kinds,
                batches,
                slices,
                partitions: if partitioning == 0 { 1 } else { partitions },
                partitioning,
                limits,
                codec: rest.0,
                checksum: rest.1,
                trouble: rest.2,
            },
        )
}

impl Case {
    fn rows(&self) -> Vec<RecordBatch> {
        let mut random = Random::new(self.seed);
        let mut batch = |from: usize, rows: usize| {
            let ids = from as i64..(from + rows) as i64;
            let mut columns = vec![Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef];
            columns.extend(self.kinds.iter().map(|kind| random.array(*kind, rows)));
            let fields = columns.iter().enumerate();
            let fields = fields
                .map(|(n, column)| Field::new(format!("c{n}"), column.data_type().clone(), n > 0));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            RecordBatch::try_new(schema, columns).unwrap()
        };
        let all = self.slices.then(|| batch(0, self.batches.iter().sum()));
        let mut from = 0;
        let batches = self.batches.iter().map(|rows| {
            from += rows;
            match &all {
                Some(all) => all.slice(from - rows, *rows),
                None => batch(from - rows, *rows),
            }
        });
        batches.collect()
    }

    /// Adds the partitions of rows, where they are given, and returns those that must come out.
    fn placed(&self, batches: &[RecordBatch]) -> (Vec<RecordBatch>, Vec<Vec<i64>>) {
        let mut random = Random::new(self.seed ^ 1);
        let mut expected = vec![Vec::new(); self.partitions];
        let schema = batches[0].schema();
        if self.partitioning == 4 {
            let mut fields = schema.fields().to_vec();
            fields.push(Arc::new(Field::new("id", DataType::Int32, false)));
            let schema = Arc::new(Schema::new(fields));
            let placed = batches.iter().map(|batch| {
                let ids = (0..batch.num_rows()).map(|_| random.below(self.partitions) as i32);
                let ids = ids.collect::<Vec<_>>();
                for (row, id) in numbers(batch).iter().zip(&ids) {
                    expected[*id as usize].push(*row);
                }
                let mut columns = batch.columns().to_vec();
                columns.push(Arc::new(Int32Array::from(ids)));
                RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
            });
            return (placed.collect(), expected);
        }
        let mut partitioner = self.partitioning(&schema).partitioner(&schema).unwrap();
        let mut ids = Vec::new();
        for batch in batches {
            partitioner.assign(batch, &mut ids).unwrap();
            for (row, id) in numbers(batch).iter().zip(&ids) {
                expected[*id as usize].push(*row);
            }
        }
        (batches.to_vec(), expected)
    }

    fn partitioning(&self, schema: &SchemaRef) -> ShufflePartitioning {
        let partitions = self.partitions;
        let key = || Arc::new(Column::new("c0", 0));
        match self.partitioning {
            0 => ShufflePartitioning::Single,
            1 => ShufflePartitioning::Hash {
                keys: vec![key()],
                partitions,
            },
            2 => {
                let bounds = Int64Array::from_iter_values((1..partitions as i64).map(|n| n * 9));
                let bounds: ArrayRef = Arc::new(bounds);
                let field = schema.field(0).clone();
                let schema = Arc::new(Schema::new(vec![field]));
                ShufflePartitioning::Range {
                    keys: vec![(key(), SortOptions::default())],
                    bounds: RecordBatch::try_new(schema, vec![bounds]).unwrap(),
                    partitions,
                }
            }
            3 => ShufflePartitioning::RoundRobin {
                partitions,
                start: self.seed as usize % 1000,
            },
            _ => ShufflePartitioning::Ids { partitions },
        }
    }

    fn options(&self, directory: &Path) -> ShuffleWriterOptions {
        let mut options = ShuffleWriterOptions::new(directory.join("data"), self.codec);
        options.block_rows = self.limits.block_rows;
        options.max_block_bytes = self.limits.block_bytes;
        options.max_buffer_bytes = self.limits.buffer_bytes;
        options.reservation_step = self.limits.step;
        options.write_buffer_size = self.limits.write_size;
        options.checksum = self.checksum;
        if let Some(at) = self.trouble.cancel_at {
            let blocks = AtomicUsize::new(0);
            options.is_cancelled = Arc::new(move || blocks.fetch_add(1, Ordering::SeqCst) >= at);
        }
        options
    }
}

fn numbers(batch: &RecordBatch) -> &[i64] {
    batch.column(0).as_primitive::<Int64Type>().values()
}

fn write(
    case: &Case,
    batches: &[RecordBatch],
    spark: &MoodySpark,
    pool: &Arc<dyn MemoryPool>,
    options: ShuffleWriterOptions,
) -> Result<ShuffleOutput, ShuffleError> {
    let schema = batches[0].schema();
    let partitioning = case.partitioning(&schema);
    let mut writer = ShuffleWriter::new(schema, &partitioning, pool, options)?;
    let handle = writer.spill_handle();
    spark.spills(handle.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(handle) = handle.filter(|_| case.trouble.thread) {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    // Its failures are the writer's, too.
                    let _ = handle.spill(1);
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
        }
        let inserted = batches
            .iter()
            .try_for_each(|batch| writer.insert_batch(batch));
        let output = inserted.and_then(|()| writer.finish());
        done.store(true, Ordering::SeqCst);
        output
    })
}

fn checksum(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Option<u32> {
    match algorithm {
        ChecksumAlgorithm::None => None,
        ChecksumAlgorithm::Adler32 => Some(adler2::adler32_slice(bytes)),
        ChecksumAlgorithm::Crc32 => Some(crc32fast::hash(bytes)),
        ChecksumAlgorithm::Crc32c => Some(crc32c::crc32c(bytes)),
    }
}

fn check_output(
    case: &Case,
    batches: &[RecordBatch],
    expected: &[Vec<i64>],
    path: &Path,
    output: &ShuffleOutput,
) {
    let lengths = &output.partitions.lengths;
    let schema = batches[0].schema();
    let all = concat_batches(&schema, batches).unwrap();
    let partitions = read(path, &schema, lengths);
    assert_eq!(partitions.len(), expected.len());
    for (blocks, rows) in partitions.iter().zip(expected) {
        assert!(
            blocks
                .iter()
                .all(|block| block.num_rows() <= case.limits.block_rows)
        );
        let arrived = concat_batches(&schema, blocks).unwrap();
        assert_eq!(numbers(&arrived), rows);
        let places: Vec<_> = rows.iter().map(|row| (0, *row as usize)).collect();
        if !places.is_empty() {
            assert_eq!(arrived, interleave_record_batch(&[&all], &places).unwrap());
        }
    }
    let bytes = std::fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let checksums = lengths.iter().map(|length| {
        let (partition, after) = rest.split_at(*length as usize);
        rest = after;
        checksum(case.checksum, partition)
    });
    let checksums: Vec<_> = checksums.flatten().collect();
    assert_eq!(output.partitions.checksums, checksums);
    assert_eq!(output.metrics.rows, all.num_rows() as u64);
}

/// Returns whether rows were written, and whether they were spilled before.
fn run(case: &Case) -> (bool, bool) {
    let directory = tempfile::tempdir().unwrap();
    let batches = case.rows();
    let (placed, expected) = case.placed(&batches);
    let spark = MoodySpark::new(
        case.seed,
        case.trouble.deny_one_in,
        case.trouble.spill_one_in,
    );
    let memory = Arc::clone(&spark) as Arc<dyn SparkMemory>;
    let (pool, task): (Arc<dyn MemoryPool>, Arc<dyn TaskMemoryPool>) = if case.trouble.fair {
        let pool = Arc::new(FairUnifiedPool::new(memory));
        (Arc::clone(&pool) as _, pool)
    } else {
        let pool = Arc::new(GreedyUnifiedPool::new(memory));
        (Arc::clone(&pool) as _, pool)
    };
    let options = case.options(directory.path());
    let path = options.data_path.clone();
    let output = write(case, &placed, &spark, &pool, options);
    task.check().unwrap();
    assert_eq!(spark.held(), 0, "all memory is given back");
    let files = std::fs::read_dir(directory.path()).unwrap().count();
    match output {
        Ok(output) => {
            assert_eq!(files, 1);
            check_output(case, &batches, &expected, &path, &output);
            (true, output.metrics.spills > 0)
        }
        Err(error) => {
            assert_eq!(files, 0);
            match error {
                ShuffleError::Memory(error) => {
                    assert!(error.is_denied(), "{error}");
                    assert!(case.trouble.deny_one_in > 0);
                }
                ShuffleError::Cancelled | ShuffleError::Failed(_) => {
                    assert!(case.trouble.cancel_at.is_some());
                }
                other => panic!("{other}"),
            }
            (false, false)
        }
    }
}

/// Runs `cases`, some of which must spill: else they would not show much.
fn run_all(cases: u32, strategy: impl Strategy<Value = Case>) {
    let counts = [const { AtomicUsize::new(0) }; 3];
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(case in strategy)| {
        let (rows, spills) = run(&case);
        for (count, more) in counts.iter().zip([true, rows, spills]) {
            count.fetch_add(usize::from(more), Ordering::SeqCst);
        }
    });
    let [run, written, spilled] = counts.map(AtomicUsize::into_inner);
    assert!(
        written > run / 4 && spilled >= run / 20,
        "{written} and {spilled} of {run}"
    );
}

#[test]
fn every_row_arrives_once() {
    run_all(300, cases());
}

#[test]
fn many_rows_arrive_once() {
    // Enough rows for sorted groups.
    let cases = cases().prop_map(|mut case| {
        case.batches.iter_mut().for_each(|rows| *rows *= 80);
        case.kinds.truncate(2);
        case.limits.block_rows = case.limits.block_rows.max(100);
        case.limits.block_bytes = case.limits.block_bytes.max(2000);
        case.limits.buffer_bytes = case
            .limits
            .buffer_bytes
            .map(|bytes| bytes.max(300_000) * 10);
        case
    });
    run_all(20, cases);
}

#[test]
fn rows_without_columns_arrive_once() {
    let config = ProptestConfig {
        cases: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(batches in vec(0..3000_usize, 1..5), partitions in 1..200_usize)| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let options = ShuffleWriterOptions::new(path.clone(), Codec::None);
        let spark = MoodySpark::new(1, 2, 0);
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyUnifiedPool::new(spark));
        let schema = Arc::new(Schema::empty());
        let partitioning = ShufflePartitioning::RoundRobin { partitions, start: 0 };
        let mut writer =
            ShuffleWriter::new(Arc::clone(&schema), &partitioning, &pool, options).unwrap();
        for rows in &batches {
            let rows = RecordBatchOptions::new().with_row_count(Some(*rows));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &rows);
            writer.insert_batch(&batch.unwrap()).unwrap();
        }
        let lengths = writer.finish().unwrap().partitions.lengths;
        let partitions = read(&path, &schema, &lengths);
        let rows = partitions.iter().flatten().map(RecordBatch::num_rows).sum::<usize>();
        prop_assert_eq!(rows, batches.iter().sum::<usize>());
    });
}
