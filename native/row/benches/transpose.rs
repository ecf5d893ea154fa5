//! Rows a second from UnsafeRow to Arrow, in batches as the shuffle writer makes them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use comet_row::{SparkField, SparkType};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::random::Random;
use support::tables::{lineitem, lineitem_row, nested, nested_row};
use support::{Value, field, page, refs, transposer, write};

const ROWS: usize = 8192;

fn run(c: &mut Criterion, name: &str, fields: &[SparkField], rows: Vec<Vec<Value>>) {
    let rows: Vec<_> = rows.iter().map(|row| write::row(fields, row)).collect();
    let bytes: usize = rows.iter().map(Vec::len).sum();
    let page = page(&rows);
    let refs = refs(&page).unwrap();
    let mut transposer = transposer(fields);
    let mut group = c.benchmark_group(name);
    for (unit, throughput) in [
        ("rows", Throughput::Elements(rows.len() as u64)),
        ("bytes", Throughput::Bytes(bytes as u64)),
    ] {
        group.throughput(throughput);
        group.bench_function(unit, |bencher| {
            // SAFETY: the page outlives the benchmark.
            bencher.iter(|| unsafe { transposer.transpose(black_box(&refs)) }.unwrap());
        });
    }
    group.finish();
}

fn transpose(c: &mut Criterion) {
    let mut random = Random(1);
    let mut rows = |make: &dyn Fn(&mut Random) -> Vec<Value>| -> Vec<_> {
        (0..ROWS).map(|_| make(&mut random)).collect()
    };
    run(
        c,
        "lineitem",
        &lineitem(),
        rows(&|random| lineitem_row(random, false)),
    );
    run(
        c,
        "lineitem, 10% null",
        &lineitem(),
        rows(&|random| lineitem_row(random, true)),
    );
    let long = [field("id", SparkType::Long)];
    run(
        c,
        "one long",
        &long,
        rows(&|random| vec![Value::Long(random.bits() as i64)]),
    );
    run(c, "nested", &nested(), rows(&nested_row));
}

criterion_group!(benches, transpose);
criterion_main!(benches);
