//! Rows like those of real tables, for benchmarks.

use comet_row::{SparkField, SparkType};

use super::random::Random;
use super::{Value, array_of, field, map_of};

pub fn lineitem() -> Vec<SparkField> {
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

pub fn lineitem_row(random: &mut Random, nulls: bool) -> Vec<Value> {
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

pub fn nested() -> Vec<SparkField> {
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

pub fn nested_row(random: &mut Random) -> Vec<Value> {
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
