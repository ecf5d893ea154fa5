//! Range and round robin.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation)]

mod common;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SortOptions};
use comet_shuffle_writer::{
    Partitioner, RoundRobinPartitioner, ShufflePartitioning, ShuffleWriter,
};
use common::{batch, ids, options};
use datafusion_execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion_physical_expr::expressions::Column;

fn one(array: ArrayRef) -> RecordBatch {
    let field = Field::new("k", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn range(bounds: ArrayRef, keys: ArrayRef, descending: bool) -> Vec<u32> {
    let options = SortOptions {
        descending,
        nulls_first: !descending,
    };
    let partitioning = ShufflePartitioning::Range {
        keys: vec![(Arc::new(Column::new("k", 0)), options)],
        partitions: bounds.len() + 1,
        bounds: one(bounds),
    };
    let batch = one(keys);
    let mut partitioner = partitioning.partitioner(&batch.schema()).unwrap();
    let mut ids = vec![9; 3];
    partitioner.assign(&batch, &mut ids).unwrap();
    ids
}

#[test]
fn a_key_equal_to_a_bound_belongs_to_the_earlier_partition() {
    let bounds = Arc::new(Int32Array::from(vec![10, 20]));
    let keys = vec![Some(9), Some(10), Some(11), Some(20), Some(21), None];
    let ids = range(bounds, Arc::new(Int32Array::from(keys.clone())), false);
    assert_eq!(ids, [0, 0, 1, 1, 2, 0]);
    let bounds = Arc::new(Int32Array::from(vec![20, 10]));
    let ids = range(bounds, Arc::new(Int32Array::from(keys)), true);
    assert_eq!(ids, [2, 1, 1, 0, 0, 2]);
}

#[test]
fn floats_are_ordered_as_spark_does() {
    let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
    let keys = vec![-1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN, negative_nan];
    let keys: ArrayRef = Arc::new(Float64Array::from(keys));
    let bounds = Arc::new(Float64Array::from(vec![-0.0, f64::INFINITY]));
    assert_eq!(
        range(bounds, Arc::clone(&keys), false),
        [0, 0, 0, 1, 1, 2, 2]
    );
    let bounds = Arc::new(Float64Array::from(vec![0.0, f64::NAN]));
    assert_eq!(range(bounds, keys, false), [0, 0, 0, 1, 1, 1, 1]);
}

fn deal(rows: i32, partitions: usize, cut: usize) -> Vec<u32> {
    let mut partitioner = RoundRobinPartitioner::new(partitions, 3).unwrap();
    let (mut all, mut ids) = (Vec::new(), Vec::new());
    for part in (0..rows).collect::<Vec<_>>().chunks(cut) {
        let batch = one(Arc::new(Int32Array::from(part.to_vec())));
        partitioner.assign(&batch, &mut ids).unwrap();
        all.extend_from_slice(&ids);
    }
    all
}

#[test]
fn round_robin_deals_whatever_the_batches_are() {
    let whole = deal(20_000, 7, 20_000);
    for cut in [1, 7, 17, 1000] {
        assert_eq!(deal(20_000, 7, cut), whole);
    }
    let first: Vec<_> = (0..448).map(|row| (row + 4) % 7).collect();
    assert_eq!(whole[..448], first);
    assert_eq!(whole[448..454], [4, 4, 5, 5, 6, 6]);
}

#[test]
fn round_robin_is_even_at_any_time() {
    let mut counts = [0_u32; 7];
    for id in deal(50_000, 7, 50_000) {
        counts[id as usize] += 1;
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1 + least / 64, "{counts:?}");
    }
}

#[test]
fn ids_come_with_the_batch_and_are_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let path = options.data_path.clone();
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let with_ids = |batch: RecordBatch, ids: Vec<i32>| {
        let mut fields = batch.schema().fields().to_vec();
        fields.push(Arc::new(Field::new("id", DataType::Int32, false)));
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(Int32Array::from(ids)));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    };
    let first = with_ids(batch(0, 4), vec![2, 0, 2, 2]);
    let partitioning = ShufflePartitioning::Ids { partitions: 3 };
    let mut writer = ShuffleWriter::new(first.schema(), &partitioning, &pool, options).unwrap();
    writer.insert_batch(&first).unwrap();
    writer
        .insert_batch(&with_ids(batch(4, 2), vec![0, 2]))
        .unwrap();
    let output = writer.finish().unwrap();
    let rows = ids(&path, &output.partitions.lengths);
    assert_eq!(rows, [vec![1, 4], vec![], vec![0, 2, 3, 5]]);

    for bad in [3, -1] {
        let partitioner = partitioning.partitioner(&first.schema());
        let batch = with_ids(batch(0, 1), vec![bad]);
        let error = partitioner
            .unwrap()
            .assign(&batch, &mut Vec::new())
            .unwrap_err();
        assert!(error.to_string().contains("out of range"), "{error}");
    }
}
