//! Rows that lie about their contents are refused or read, but never read past.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]
#![allow(clippy::panic)]

mod support;

use comet_row::{RowError, SparkField, SparkSchema, SparkType};
use proptest::prelude::*;
use support::random::Random;
use support::{Value, array_of, field, map_of, read, refs, transposer, write};

fn refused(fields: &[SparkField], row: Vec<u8>) -> (String, String) {
    match support::transpose(&mut transposer(fields), &[row]) {
        Err(RowError::Malformed { column, detail }) => (column, detail),
        other => panic!("{other:?}"),
    }
}

fn put(row: &mut [u8], at: usize, word: u64) {
    row[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

#[test]
fn short_rows() {
    let fields = [field("a", SparkType::Int), field("b", SparkType::Int)];
    let expected = "23 bytes are too few for 2 fields, which take 24";
    assert_eq!(
        refused(&fields, vec![0; 23]),
        ("<row>".into(), expected.into())
    );
    assert_eq!(refused(&fields, vec![]).0, "<row>");
}

#[test]
fn values_outside() {
    let fields = [field("a", SparkType::Int), field("s", SparkType::String)];
    let mut row = write::row(&fields, &[Value::Int(1), Value::Bytes(b"abc".to_vec())]);
    put(&mut row, 16, 24 << 32 | 9);
    let expected = "9 bytes at offset 24 don't lie in the 32 bytes around them";
    assert_eq!(refused(&fields, row.clone()), ("s".into(), expected.into()));
    put(&mut row, 16, u64::MAX);
    assert_eq!(refused(&fields, row.clone()).0, "s");
    // Under a null bit the slot doesn't matter.
    row[0] = 2;
    let batch = support::transpose(&mut transposer(&fields), &[row]).unwrap();
    assert_eq!(read::rows(&fields, &batch), [[Value::Int(1), Value::Null]]);
}

#[test]
fn nested_columns_are_named() {
    let inner = SparkType::Struct(vec![field("x", array_of(SparkType::String))]);
    let fields = [
        field("s", inner),
        field("m", map_of(SparkType::Int, SparkType::Long)),
    ];
    let texts = Value::Array(vec![Value::Bytes(vec![1])]);
    let map = Value::Map(vec![Value::Int(1)], vec![Value::Long(2)]);
    let good = write::row(&fields, &[Value::Struct(vec![texts]), map]);

    // The row is 24 bytes of fixed part, the struct 16, its array's count, nulls and slot 24.
    let mut row = good.clone();
    put(&mut row, 24 + 16 + 16, 25 << 32 | 100);
    assert_eq!(refused(&fields, row).0, "s.x.element");
    let mut row = good.clone();
    put(&mut row, 24 + 16, u64::MAX);
    assert_eq!(refused(&fields, row).0, "s.x");
    // The map follows 8 bytes of text: size of the keys, then their count.
    let map = 24 + 16 + 24 + 8;
    let mut row = good.clone();
    put(&mut row, map, 1000);
    assert_eq!(
        refused(&fields, row).1,
        "a map's keys have 1000 bytes, but 48 are left"
    );
    let mut row = good.clone();
    put(&mut row, map + 8, 2);
    assert_eq!(refused(&fields, row).1, "a map has 2 keys, 1 values");
    let mut row = good;
    put(&mut row, map + 16, 1);
    assert_eq!(
        refused(&fields, row),
        ("m.key".into(), "a map key is null".into())
    );
}

#[test]
fn sizes_of_decimals_intervals_and_variants() {
    for (data_type, sizes) in [
        (
            SparkType::Decimal {
                precision: 38,
                scale: 0,
            },
            [0, 17],
        ),
        (SparkType::CalendarInterval, [15, 17]),
        (SparkType::Variant, [0, 3]),
    ] {
        for size in sizes {
            let mut row = vec![0; 40];
            put(&mut row, 8, 16 << 32 | size);
            assert_eq!(refused(&[field("c", data_type.clone())], row).0, "c");
        }
    }
    let mut row = vec![0; 24];
    put(&mut row, 8, 16 << 32 | 8);
    put(&mut row, 16, 5);
    assert_eq!(
        refused(&[field("v", SparkType::Variant)], row).1,
        "a variant's value has 5 bytes, but 4 are left"
    );
}

/// Each element of the outer array points at the same inner array, which would grow without bounds.
#[test]
fn overlap_takes_no_memory() {
    let fields = [field("a", array_of(array_of(SparkType::Byte)))];
    let inner = vec![Value::Byte(1); 4000];
    let outer = Value::Array(vec![
        Value::Array(inner),
        Value::Array(vec![]),
        Value::Array(vec![]),
    ]);
    let mut row = write::row(&fields, &[outer]);
    let slot = row[32..40].to_vec();
    row[40..48].copy_from_slice(&slot);
    let (column, detail) = refused(&fields, row);
    assert_eq!(column, "a.element");
    assert!(detail.contains("overlap"), "{detail}");
}

#[test]
fn too_large_batches() {
    let fields = [field("s", SparkType::Binary)];
    let row = write::row(&fields, &[Value::Bytes(vec![1; 1 << 20])]);
    let page = support::page(&[row]);
    let rows = vec![refs(&page).unwrap()[0]; 2048];
    let mut transposer = transposer(&fields);
    // SAFETY: the page outlives the calls.
    let error = unsafe { transposer.transpose(&rows) }.unwrap_err();
    assert!(
        matches!(error, RowError::BatchTooLarge { rows: 2048, .. }),
        "{error}"
    );
    // SAFETY: as above.
    let batch = unsafe { transposer.transpose(&rows[..2]) }.unwrap();
    assert_eq!(batch.num_rows(), 2);
}

#[test]
fn random_mutations() {
    let (mut refused, mut read) = (0, 0);
    for seed in 0..3000 {
        let mut random = Random(seed);
        let fields = random.fields(6, 4);
        let mut transposer = transposer(&fields);
        let mut rows: Vec<_> = (0..20)
            .map(|_| write::row(&fields, &random.row(&fields, 1)))
            .collect();
        for _ in 0..1 + random.below(4) {
            let at = random.below(rows.len());
            mutate(&mut random, &mut rows[at]);
        }
        match support::transpose(&mut transposer, &rows) {
            Ok(batch) => {
                read::rows(&fields, &batch);
                read += 1;
            }
            Err(RowError::Malformed { column, .. }) => {
                assert!(!column.is_empty());
                refused += 1;
            }
            Err(other) => panic!("seed {seed}: {other}"),
        }
        // An error leaves nothing behind.
        let row = random.row(&fields, 1);
        let good = support::transpose(&mut transposer, &[write::row(&fields, &row)]).unwrap();
        assert_eq!(read::rows(&fields, &good), [row]);
    }
    assert!(
        refused > 500 && read > 500,
        "{refused} refused, {read} read"
    );
}

fn mutate(random: &mut Random, row: &mut Vec<u8>) {
    if row.is_empty() {
        return;
    }
    let at = random.below(row.len());
    match random.below(4) {
        0 => row[at] ^= 1 << random.below(8),
        1 => row[at] = random.bits() as u8,
        2 => row.truncate(at),
        _ => {
            let at = at / 8 * 8;
            let word = [
                u64::MAX,
                1 << 63,
                0,
                1 << 32,
                random.bits(),
                u64::from(u32::MAX),
            ];
            let word = word[random.below(word.len())];
            if row.len() >= at + 8 {
                put(row, at, word);
            }
        }
    }
}

proptest! {
    #[test]
    fn descriptors_of_any_bytes(bytes in proptest::collection::vec(0_u8..24, 0..64)) {
        let _ = SparkSchema::parse(&bytes);
    }

    #[test]
    fn pages_of_any_bytes(bytes in proptest::collection::vec(0_u8..6, 0..64)) {
        if let Ok(rows) = refs(&bytes) {
            prop_assert!(rows.len() * 4 <= bytes.len());
        }
    }
}
