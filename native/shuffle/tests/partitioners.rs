//! Range and round robin.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation)]

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{Field, Schema, SortOptions};
use comet_shuffle_writer::{Partitioner, RoundRobinPartitioner, ShufflePartitioning};
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

#[test]
fn round_robin_ignores_order_and_batches_and_spreads_equal_rows() {
    let values: Vec<_> = (0..3000).map(|n| (n % 3 != 0).then_some(n % 700)).collect();
    let place = |values: &[Option<i32>], cut: usize| {
        let mut partitioner = RoundRobinPartitioner::new(7).unwrap();
        let mut placed: HashMap<(Option<i32>, u32), usize> = HashMap::new();
        let mut ids = Vec::new();
        for part in values.chunks(cut) {
            let batch = one(Arc::new(Int32Array::from(part.to_vec())));
            partitioner.assign(&batch, &mut ids).unwrap();
            for (value, id) in part.iter().zip(&ids) {
                *placed.entry((*value, *id)).or_default() += 1;
            }
        }
        placed
    };
    let placed = place(&values, 3000);
    let mut others = values.clone();
    others.reverse();
    others.sort_by_key(|value| value.map(|value| value % 13));
    assert_eq!(placed, place(&others, 17));
    let nulls: Vec<_> = (0..7).map(|id| placed[&(None, id)]).collect();
    assert!(nulls.iter().max().unwrap() - nulls.iter().min().unwrap() <= 1);
}
