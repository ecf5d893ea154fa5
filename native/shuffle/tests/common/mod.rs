//! Batches, a pool that counts, and reading a data file back.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]
#![allow(clippy::indexing_slicing, clippy::panic)]

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, Date32Array, Decimal128Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use comet_block::{BlockHeader, BlockReader, Codec};
use comet_memory::MemoryError;
use comet_shuffle_writer::{
    MultiPartitionShuffleRepartitioner, ShufflePartitioning, ShuffleWriterOptions,
};
use datafusion_common::Result;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_physical_expr::expressions::Column;

/// Grants up to a limit and counts the calls that reach it.
#[derive(Debug)]
pub struct CountingPool {
    pub limit: AtomicUsize,
    pub held: AtomicUsize,
    pub grows: AtomicUsize,
    pub shrinks: AtomicUsize,
}

impl CountingPool {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.into(),
            held: 0.into(),
            grows: 0.into(),
            shrinks: 0.into(),
        })
    }

    pub fn register(self: &Arc<Self>) -> MemoryReservation {
        let pool = Arc::clone(self) as Arc<dyn MemoryPool>;
        MemoryConsumer::new("test")
            .with_can_spill(true)
            .register(&pool)
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    pub fn grows(&self) -> usize {
        self.grows.load(Ordering::SeqCst)
    }
}

impl fmt::Display for CountingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counting")
    }
}

impl MemoryPool for CountingPool {
    fn name(&self) -> &str {
        "counting"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.try_grow(reservation, additional).unwrap();
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.shrinks.fetch_add(1, Ordering::SeqCst);
        let held = self.held.fetch_sub(shrink, Ordering::SeqCst);
        assert!(held >= shrink);
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.grows.fetch_add(1, Ordering::SeqCst);
        let limit = self.limit.load(Ordering::SeqCst);
        let grown = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
                Some(held + additional).filter(|held| *held <= limit)
            });
        grown.map_err(|used| MemoryError::Denied {
            consumer: "test".to_owned(),
            requested: additional,
            available: limit - used,
            used,
        })?;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.held()
    }
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, true),
        Field::new("text", DataType::Binary, true),
        Field::new("day", DataType::Date32, true),
        Field::new("price", DataType::Decimal128(11, 2), true),
    ]))
}

/// Rows `from..from + rows`, whose texts are of some length and now and then null.
pub fn batch(from: i32, rows: i32) -> RecordBatch {
    let range = || from..from + rows;
    let text = range().map(|n| (n % 7 != 0).then(|| format!("text of row {n}").into_bytes()));
    let price = range().map(|n| Some(i128::from(n) * 101));
    let price: Decimal128Array = price.collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(range())),
        Arc::new(text.collect::<BinaryArray>()),
        Arc::new(Date32Array::from_iter_values(range().map(|n| n / 3))),
        Arc::new(price.with_precision_and_scale(11, 2).unwrap()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub fn by_id(partitions: usize) -> ShufflePartitioning {
    ShufflePartitioning::Hash {
        keys: vec![Arc::new(Column::new("id", 0))],
        partitions,
    }
}

pub fn options(directory: &Path) -> ShuffleWriterOptions {
    ShuffleWriterOptions::new(directory.join("data"), Codec::Lz4)
}

pub fn repartitioner(
    pool: &Arc<CountingPool>,
    partitions: usize,
    options: ShuffleWriterOptions,
) -> MultiPartitionShuffleRepartitioner {
    let partitioner = by_id(partitions).partitioner(&schema()).unwrap();
    MultiPartitionShuffleRepartitioner::new(schema(), partitioner, pool.register(), options)
        .unwrap()
}

/// Calls `block` with each block and its partition. Every block inside of a partition's range has to
/// be whole, and the last one, and no other, has to say that it is the last.
pub fn for_each_block(
    path: &Path,
    schema: &SchemaRef,
    lengths: &[u64],
    mut block: impl FnMut(usize, RecordBatch),
) {
    let data = std::fs::read(path).unwrap();
    assert_eq!(data.len() as u64, lengths.iter().sum::<u64>());
    let mut reader = BlockReader::new(Arc::clone(schema)).unwrap();
    let mut from = 0;
    for (partition, length) in lengths.iter().enumerate() {
        let mut rest = &data[from..from + *length as usize];
        from += *length as usize;
        while !rest.is_empty() {
            if BlockHeader::parse(rest).unwrap().raw_length() == 0 {
                assert_eq!(
                    rest.len(),
                    BlockHeader::LENGTH,
                    "an end marker is at the end"
                );
                assert!(BlockHeader::parse(rest).unwrap().is_last());
                break;
            }
            let read = reader.read(rest).unwrap();
            rest = &rest[read.length..];
            assert!(!read.last || rest.is_empty());
            assert!(read.last || !rest.is_empty(), "the last block is marked");
            block(partition, read.batch);
        }
    }
}

/// The blocks of each partition.
pub fn read(path: &Path, schema: &SchemaRef, lengths: &[u64]) -> Vec<Vec<RecordBatch>> {
    let mut blocks = vec![Vec::new(); lengths.len()];
    for_each_block(path, schema, lengths, |partition, block| {
        blocks[partition].push(block);
    });
    blocks
}

/// The ids of each partition in the order in which they lie there.
pub fn ids(path: &Path, lengths: &[u64]) -> Vec<Vec<i32>> {
    let mut ids = vec![Vec::new(); lengths.len()];
    for_each_block(path, &schema(), lengths, |partition, block| {
        let first = block.column(0).as_primitive::<Int32Type>();
        ids[partition].extend_from_slice(first.values());
    });
    ids
}
