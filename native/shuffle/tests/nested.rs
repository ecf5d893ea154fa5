//! Nested columns survive staging, gathering in shared chunks, slicing and spilling.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod common;

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, StructArray,
};
use arrow_schema::{DataType, Field, Schema};
use comet_shuffle_writer::{ShufflePartitioning, ShuffleWriter};
use common::{CountingPool, by_id, options, read};
use datafusion_execution::memory_pool::MemoryPool;

fn rows(rows: i32) -> RecordBatch {
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut map = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
    for n in 0..rows {
        (0..n % 4).for_each(|k| list.values().append_option((k != 1).then_some(n + k)));
        list.append(n % 5 != 0);
        for k in 0..n % 3 {
            map.keys().append_value(k);
            map.values().append_option((n % 2 == 0).then_some(n));
        }
        map.append(n % 7 != 0).unwrap();
    }
    let doubles = (0..rows).map(|n| (n % 3 != 0).then_some(-0.0 * f64::from(n)));
    let doubles: ArrayRef = Arc::new(doubles.collect::<Float64Array>());
    let flags: ArrayRef = Arc::new(
        (0..rows)
            .map(|n| Some(n % 2 == 0))
            .collect::<BooleanArray>(),
    );
    let both = StructArray::from(vec![
        (Arc::new(Field::new("d", DataType::Float64, true)), doubles),
        (
            Arc::new(Field::new("b", DataType::Boolean, true)),
            Arc::clone(&flags),
        ),
    ]);
    let ids: ArrayRef = Arc::new((0..rows).collect::<Int32Array>());
    let columns: Vec<ArrayRef> = vec![
        ids,
        Arc::new(list.finish()),
        Arc::new(map.finish()),
        Arc::new(both),
        flags,
    ];
    let names = ["id", "list", "map", "struct", "flag"].iter().zip(&columns);
    let fields = names.map(|(name, c)| Field::new(*name, c.data_type().clone(), true));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).unwrap()
}

#[test]
fn nested_rows_survive() {
    let whole = rows(2000);
    let pool: Arc<dyn MemoryPool> = CountingPool::new(usize::MAX);
    for partitioning in [
        by_id(300),
        ShufflePartitioning::RoundRobin {
            partitions: 300,
            start: 0,
        },
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        options.block_rows = 64;
        let path = options.data_path.clone();
        let mut writer = ShuffleWriter::new(whole.schema(), &partitioning, &pool, options).unwrap();
        for part in 0..8 {
            writer.insert_batch(&whole.slice(part * 250, 250)).unwrap();
            if part == 3 {
                assert!(writer.spill_handle().unwrap().spill(1).unwrap() > 0);
            }
        }
        let output = writer.finish().unwrap();
        let mut seen = 0;
        for block in read(&path, &whole.schema(), &output.partitions.lengths).concat() {
            let ids = block
                .column(0)
                .as_any()
                .downcast_ref::<Int32Array>()
                .unwrap();
            for row in 0..block.num_rows() {
                let wanted = whole.slice(ids.value(row) as usize, 1);
                assert_eq!(block.slice(row, 1), wanted);
                seen += 1;
            }
        }
        assert_eq!(seen, 2000);
    }
}
