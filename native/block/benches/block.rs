//! Writing and reading blocks of rows like TPC-H's `lineitem`, large and small ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Date32Array, Decimal128Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use comet_block::{BlockReader, BlockWriter, Codec};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const CODECS: [(&str, Codec); 4] = [
    ("none", Codec::None),
    ("lz4", Codec::Lz4),
    ("zstd1", Codec::Zstd { level: 1 }),
    ("snappy", Codec::Snappy),
];

/// A small generator, so that every run measures the same rows.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn text(&mut self, choices: &[&str]) -> String {
        choices[self.below(choices.len() as u64) as usize].to_owned()
    }
}

fn lineitem(rows: usize) -> RecordBatch {
    let random = &mut Random(0x2545_F491_4F6C_DD1D);
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    let mut order = 0;
    let orders = (0..rows).map(|_| {
        order += (random.below(4) == 0) as i64;
        order
    });
    columns.push(("l_orderkey", Arc::new(orders.collect::<Int64Array>())));
    for (name, bound) in [
        ("l_partkey", 200_000),
        ("l_suppkey", 10_000),
        ("l_linenumber", 7),
    ] {
        let values = (0..rows).map(|_| 1 + random.below(bound) as i64);
        columns.push((name, Arc::new(values.collect::<Int64Array>())));
    }
    for (name, bound) in [
        ("l_quantity", 5000),
        ("l_extendedprice", 10_000_000),
        ("l_discount", 11),
        ("l_tax", 9),
    ] {
        let values = (0..rows).map(|_| random.below(bound) as i128);
        let values = values.collect::<Decimal128Array>();
        columns.push((
            name,
            Arc::new(values.with_precision_and_scale(12, 2).unwrap()),
        ));
    }
    let words = [
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "above",
        "the",
        "ironic",
    ];
    let texts: [(&str, &[&str]); 4] = [
        ("l_returnflag", &["A", "N", "R"]),
        ("l_linestatus", &["O", "F"]),
        (
            "l_shipinstruct",
            &[
                "DELIVER IN PERSON",
                "COLLECT COD",
                "NONE",
                "TAKE BACK RETURN",
            ],
        ),
        (
            "l_shipmode",
            &["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"],
        ),
    ];
    for (name, choices) in texts {
        let values = (0..rows).map(|_| Some(random.text(choices).into_bytes()));
        columns.push((name, Arc::new(values.collect::<BinaryArray>())));
    }
    for name in ["l_shipdate", "l_commitdate", "l_receiptdate"] {
        let values = (0..rows).map(|_| Some(8000 + random.below(2500) as i32));
        columns.push((name, Arc::new(values.collect::<Date32Array>())));
    }
    let comments = (0..rows).map(|_| {
        let count = 2 + random.below(5);
        let comment: Vec<String> = (0..count).map(|_| random.text(&words)).collect();
        Some(comment.join(" ").into_bytes())
    });
    columns.push(("l_comment", Arc::new(comments.collect::<BinaryArray>())));
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| match column.data_type() {
            DataType::Binary => Field::new(*name, DataType::Binary, true)
                .with_metadata([("spark.type".to_owned(), "string".to_owned())].into()),
            other => Field::new(*name, other.clone(), true),
        })
        .collect();
    let arrays = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn block(criterion: &mut Criterion) {
    for rows in [8192, 50, 1] {
        let batch = lineitem(rows);
        for (name, codec) in CODECS {
            let mut out = Vec::new();
            let mut writer = BlockWriter::new(batch.schema(), codec).unwrap();
            let stats = writer.write(&batch, true, &mut out).unwrap();
            println!(
                "{name}/{rows}: {} raw bytes, {} in a block",
                stats.raw_length,
                out.len()
            );
            if rows == 1 {
                continue;
            }
            let mut reader = BlockReader::new(batch.schema()).unwrap();
            let mut group = criterion.benchmark_group(format!("{name}/{rows}"));
            group.throughput(Throughput::Bytes(stats.raw_length));
            let mut scratch = Vec::with_capacity(2 * out.len());
            group.bench_function("encode", |bencher| {
                bencher.iter(|| {
                    scratch.clear();
                    writer.write(black_box(&batch), true, &mut scratch).unwrap()
                });
            });
            group.bench_function("decode", |bencher| {
                bencher.iter(|| reader.read(black_box(&out)).unwrap());
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = block
}
criterion_main!(benches);
