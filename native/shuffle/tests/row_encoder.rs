//! Rows in pages to blocks of their partitions.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use comet_block::{BlockReader, Codec};
use comet_row::{RowPage, RowPointer, SparkSchema, sort_pointers};
use comet_shuffle_writer::{RowEncoder, SortedRowsOptions};
use proptest::prelude::*;

/// One column of longs, named `v`.
const DESCRIPTOR: [u8; 8] = [1, 0, 0, 0, 1, 0, b'v', 5];

/// Rows of one long each, `per_page` in a page, and pointers to them.
struct Rows {
    pages: Vec<Vec<u8>>,
    pointers: Vec<RowPointer>,
}

impl Rows {
    fn new(partitions: &[u32], per_page: usize) -> Self {
        let mut rows = Self {
            pages: Vec::new(),
            pointers: Vec::new(),
        };
        for (partition, value) in partitions.iter().zip(0_i64..) {
            if rows.pointers.len().is_multiple_of(per_page) {
                rows.pages.push(Vec::new());
            }
            let page = rows.pages.len() - 1;
            let bytes = rows.pages.last_mut().unwrap();
            let pointer = RowPointer::new(*partition, page, bytes.len()).unwrap();
            bytes.extend_from_slice(&16_u32.to_le_bytes());
            bytes.extend_from_slice(&0_u64.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
            rows.pointers.push(pointer);
        }
        rows
    }

    fn pages(&self) -> Vec<RowPage> {
        let pages = self.pages.iter();
        pages.map(|page| (page.as_ptr(), page.len())).collect()
    }
}

/// The values of each partition, the rows of each of its blocks, and how often a block was its last.
type Decoded = BTreeMap<u32, (Vec<i64>, Vec<usize>, usize)>;

fn encode(partitions: &[u32], options: SortedRowsOptions) -> (Decoded, usize) {
    let mut rows = Rows::new(partitions, 100);
    let count = partitions.iter().max().map_or(1, |max| max + 1);
    let mut scratch = rows.pointers.clone();
    if sort_pointers(&mut rows.pointers, &mut scratch, count) {
        rows.pointers = scratch;
    }
    let mut encoder = RowEncoder::new(&DESCRIPTOR, Codec::Lz4).unwrap();
    let schema = SparkSchema::parse(&DESCRIPTOR).unwrap().arrow_schema();
    let mut reader = BlockReader::new(schema).unwrap();
    let mut decoded = Decoded::new();
    let mut rest = rows.pointers.as_slice();
    let mut calls = 0;
    while !rest.is_empty() {
        // SAFETY: the pages live until the end of this function.
        let (encoded, stats) =
            unsafe { encoder.encode_sorted(&rows.pages(), rest, options) }.unwrap();
        rest = &rest[encoded..];
        calls += 1;
        let made = encoder.partitions().to_vec();
        assert!(made.len() <= options.max_partitions);
        let mut bytes = &*encoder.blocks();
        let mut blocks = 0;
        for entry in made {
            let (mut own, others) = bytes.split_at(entry.bytes);
            bytes = others;
            let partition = decoded.entry(entry.partition).or_default();
            while !own.is_empty() {
                let block = reader.read(own).unwrap();
                own = &own[block.length..];
                let values = block.batch.column(0).as_primitive::<Int64Type>();
                partition.0.extend_from_slice(values.values());
                partition.1.push(block.batch.num_rows());
                partition.2 += usize::from(block.last);
                blocks += 1;
            }
        }
        assert!(bytes.is_empty());
        assert_eq!(stats.blocks, blocks);
    }
    (decoded, calls)
}

fn options(block_rows: usize) -> SortedRowsOptions {
    SortedRowsOptions {
        block_rows,
        max_partitions: 1000,
        last: true,
    }
}

proptest! {
    #[test]
    fn every_row_is_in_a_block_of_its_partition(
        partitions in prop::collection::vec(prop_oneof![0..4_u32, 0..500_u32], 0..3000),
        block_rows in 1..700_usize,
        max_partitions in 1..50_usize,
        last in any::<bool>(),
    ) {
        let options = SortedRowsOptions { block_rows, max_partitions, last };
        let (decoded, _) = encode(&partitions, options);
        let mut expected = BTreeMap::<u32, Vec<i64>>::new();
        for (partition, value) in partitions.iter().zip(0..) {
            expected.entry(*partition).or_default().push(value);
        }
        prop_assert_eq!(decoded.len(), expected.len());
        for (partition, values) in expected {
            let (found, blocks, lasts) = &decoded[&partition];
            // No block is smaller than it must be.
            prop_assert_eq!(blocks.len(), values.len().div_ceil(block_rows));
            prop_assert_eq!(*lasts, usize::from(last));
            prop_assert_eq!(found, &values);
        }
    }
}

#[test]
fn calls_follow_bytes_not_partitions() {
    let partitions: Vec<u32> = (0..2000).collect();
    let options = SortedRowsOptions {
        max_partitions: 8192,
        ..options(8192)
    };
    let (decoded, calls) = encode(&partitions, options);
    assert_eq!((decoded.len(), calls), (2000, 1));
}

#[test]
fn pointers_outside_of_pages_are_errors() {
    let rows = Rows::new(&[0, 0], 100);
    let mut encoder = RowEncoder::new(&DESCRIPTOR, Codec::None).unwrap();
    for (page, offset) in [(1, 0), (0, 30)] {
        let pointer = RowPointer::new(0, page, offset).unwrap();
        // SAFETY: the pages live until the end of this function.
        let result = unsafe { encoder.encode_sorted(&rows.pages(), &[pointer], options(10)) };
        assert!(result.unwrap_err().to_string().contains("row page"));
        // SAFETY: as above.
        let result = unsafe { encoder.encode_sorted(&rows.pages(), &rows.pointers, options(10)) };
        assert_eq!(result.unwrap().0, 2);
    }
}
