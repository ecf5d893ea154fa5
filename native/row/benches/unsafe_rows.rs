//! Rows a second from Arrow to UnsafeRow, batch by batch, in one go and in pieces of 256 KiB.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use comet_row::{SparkField, SparkType, UnsafeRowWriter};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::random::Random;
use support::tables::{lineitem, lineitem_row, nested, nested_row};
use support::{Value, field, schema, transpose, transposer, write};

const ROWS: usize = 8192;

fn run(c: &mut Criterion, name: &str, fields: &[SparkField], rows: Vec<Vec<Value>>) {
    let rows: Vec<_> = rows.iter().map(|row| write::row(fields, row)).collect();
    let batch = transpose(&mut transposer(fields), &rows).unwrap();
    let mut writer = UnsafeRowWriter::new(schema(fields));
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(rows.len() as u64));
    for (way, max_bytes) in [("whole", usize::MAX), ("pieces", 256 << 10)] {
        group.bench_function(way, |bencher| {
            bencher.iter(|| {
                let mut first = 0;
                while first < ROWS {
                    let batch = black_box(&batch);
                    let rows = writer.write(batch, first, ROWS, max_bytes).unwrap();
                    first += rows.lengths.len();
                }
            });
        });
    }
    group.finish();
}

fn unsafe_rows(c: &mut Criterion) {
    let mut random = Random(1);
    let mut rows = |make: &dyn Fn(&mut Random) -> Vec<Value>| -> Vec<_> {
        (0..ROWS).map(|_| make(&mut random)).collect()
    };
    let items = rows(&|random| lineitem_row(random, false));
    run(c, "rows of lineitem", &lineitem(), items);
    let items = rows(&|random| lineitem_row(random, true));
    run(c, "rows of lineitem, 10% null", &lineitem(), items);
    let long = [field("id", SparkType::Long)];
    let longs = rows(&|random| vec![Value::Long(random.bits() as i64)]);
    run(c, "rows of one long", &long, longs);
    run(c, "rows of nested", &nested(), rows(&nested_row));
}

criterion_group!(benches, unsafe_rows);
criterion_main!(benches);
