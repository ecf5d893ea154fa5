//! Rows a second from UnsafeRow to Arrow, in batches as the shuffle writer makes them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_wrap)]
#![allow(clippy::cast_possible_truncation, clippy::indexing_slicing)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use comet_row::{SparkField, SparkType};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::random::Random;
use support::{Value, array_of, field, map_of, page, refs, transposer, write};

const ROWS: usize = 8192;

fn lineitem() -> Vec<SparkField> {
    let decimal = SparkType::Decimal {
        precision: 15,
        scale: 2,
    };
    vec![
        field("l_orderkey", SparkType::Long),
        field("l_partkey", SparkType::Long),
        field("l_suppkey", SparkType::Long),
        field("l_linenumber", SparkType::Int),
        field("l_quantity", decimal.clone()),
        field("l_extendedprice", decimal.clone()),
        field("l_discount", decimal.clone()),
        field("l_tax", decimal),
        field("l_returnflag", SparkType::String),
        field("l_linestatus", SparkType::String),
        field("l_shipdate", SparkType::Date),
        field("l_commitdate", SparkType::Date),
        field("l_receiptdate", SparkType::Date),
        field("l_shipinstruct", SparkType::String),
        field("l_shipmode", SparkType::String),
        field("l_comment", SparkType::String),
    ]
}

fn lineitem_row(random: &mut Random, nulls: bool) -> Vec<Value> {
    let mut row = Vec::new();
    for field in lineitem() {
        let text = |len: usize| Value::Bytes(vec![b'x'; len]);
        row.push(match field.data_type {
            _ if nulls && random.below(10) == 0 => Value::Null,
            SparkType::Long => Value::Long(random.below(6_000_000) as i64),
            SparkType::Int => Value::Int(random.below(8) as i32),
            SparkType::Date => Value::Int(8000 + random.below(2500) as i32),
            SparkType::Decimal { .. } => Value::Decimal(random.below(10_000_000) as i128),
            _ => match field.name.as_str() {
                "l_shipinstruct" => text([17, 11, 4, 16][random.below(4)]),
                "l_shipmode" => text([7, 3, 4, 5, 4, 4, 3][random.below(7)]),
                "l_comment" => text(10 + random.below(34)),
                _ => text(1),
            },
        });
    }
    row
}

fn nested() -> Vec<SparkField> {
    let point = vec![
        field("x", SparkType::Double),
        field("name", SparkType::String),
    ];
    vec![
        field("id", SparkType::Long),
        field("point", SparkType::Struct(point.clone())),
        field("longs", array_of(SparkType::Long)),
        field("points", array_of(SparkType::Struct(point))),
        field("tags", map_of(SparkType::String, SparkType::Int)),
    ]
}

fn nested_row(random: &mut Random) -> Vec<Value> {
    let text = |random: &mut Random| Value::Bytes(random.bytes(12));
    let point =
        |random: &mut Random| Value::Struct(vec![Value::Double(random.bits()), text(random)]);
    vec![
        Value::Long(random.bits() as i64),
        point(random),
        Value::Array(
            (0..random.below(9))
                .map(|i| Value::Long(i as i64))
                .collect(),
        ),
        Value::Array((0..random.below(4)).map(|_| point(random)).collect()),
        Value::Map(
            vec![text(random), text(random)],
            vec![Value::Int(1), Value::Null],
        ),
    ]
}

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
