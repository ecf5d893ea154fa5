//! What partitions cost: the same rows into more and more of them, beside a plain copy.
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use comet_block::Codec;
use comet_shuffle_writer::{ShufflePartitioning, ShuffleWriter, ShuffleWriterOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use datafusion_execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion_physical_expr::expressions::Column;

const BATCHES: i32 = 10;
const ROWS: i32 = 8192;

/// (int32, utf8 with nulls, date32, decimal(11,2)), over and over up to `columns`.
fn batches(columns: usize) -> Vec<RecordBatch> {
    let batch = |from: i32| {
        let rows = || from..from + ROWS;
        let arrays = (0..columns).map(|column| -> ArrayRef {
            match column % 4 {
                0 => Arc::new(Int32Array::from_iter_values(rows())),
                1 => Arc::new(
                    rows()
                        .map(|n| (n % 10 != 0).then(|| format!("value {}", n * 7919 % 10_007)))
                        .collect::<StringArray>(),
                ),
                2 => Arc::new(Date32Array::from_iter_values(
                    rows().map(|n| 8000 + n % 2500),
                )),
                _ => {
                    let values = rows().map(|n| i128::from(n) * 37 % 1_000_000);
                    let values = Decimal128Array::from_iter_values(values);
                    Arc::new(values.with_precision_and_scale(11, 2).unwrap())
                }
            }
        });
        let arrays: Vec<_> = arrays.collect();
        let fields = arrays.iter().enumerate();
        let fields = fields.map(|(n, a)| Field::new(format!("c{n}"), a.data_type().clone(), true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
    };
    (0..BATCHES).map(|n| batch(n * ROWS)).collect()
}

fn write(batches: &[RecordBatch], partitions: usize, options: &ShuffleWriterOptions) -> u64 {
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let partitioning = ShufflePartitioning::Hash {
        keys: vec![Arc::new(Column::new("c0", 0))],
        partitions,
    };
    let schema = batches.first().unwrap().schema();
    let mut writer = ShuffleWriter::new(schema, &partitioning, &pool, options.clone()).unwrap();
    for batch in batches {
        writer.insert_batch(batch).unwrap();
    }
    let output = writer.finish().unwrap();
    if std::env::var_os("SHOW_METRICS").is_some() {
        println!("{:?}", output.metrics);
    }
    output.partitions.lengths.iter().sum()
}

fn shuffle_writer_high_partition(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let mut run = |name: &str, columns: usize, codec: Codec, partitions: &[usize]| {
        let batches = batches(columns);
        let options = ShuffleWriterOptions::new(directory.path().join("data"), codec);
        let mut group = criterion.benchmark_group(format!("{name}, {columns} columns"));
        group.sample_size(20);
        for partitions in partitions {
            let bytes = write(&batches, *partitions, &options);
            group.throughput(Throughput::Bytes(bytes));
            println!("{name}/{columns}/{partitions}: {bytes} bytes");
            group.bench_function(format!("{partitions}"), |bencher| {
                bencher.iter(|| write(&batches, *partitions, &options));
            });
            if codec == Codec::None {
                let data = std::fs::read(&options.data_path).unwrap();
                group.bench_function(format!("copy of {partitions}"), |bencher| {
                    bencher.iter(|| {
                        let mut file = std::fs::File::create(&options.data_path).unwrap();
                        let copy = data.clone();
                        copy.chunks(1 << 20)
                            .for_each(|part| file.write_all(part).unwrap());
                    });
                });
            }
        }
        group.finish();
    };
    run("none", 4, Codec::None, &[20, 200, 2000, 8000]);
    run("lz4", 4, Codec::Lz4, &[200, 8000]);
    run("zstd", 4, Codec::Zstd { level: 1 }, &[200, 8000]);
    for columns in [1, 10, 100] {
        run("none", columns, Codec::None, &[200]);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = shuffle_writer_high_partition
}
criterion_main!(benches);
