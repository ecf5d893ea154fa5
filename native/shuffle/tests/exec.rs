//! The plan node, and the paths without staging.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use comet_shuffle_writer::{ShufflePartitioning, ShuffleWriter, ShuffleWriterExec};
use common::{CountingPool, batch, by_id, ids, options, read, schema};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::test::TestMemoryExec;
use datafusion_physical_plan::{ExecutionPlan, collect};

#[test]
fn the_plan_node_writes_its_input() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for partitioning in [by_id(10), ShufflePartitioning::Single] {
        let directory = tempfile::tempdir().unwrap();
        let options = options(directory.path());
        let path = options.data_path.clone();
        let batches = vec![batch(0, 100), batch(100, 0), batch(100, 9000)];
        let input = TestMemoryExec::try_new_exec(&[batches], schema(), None).unwrap();
        let exec = ShuffleWriterExec::try_new(input, partitioning, options).unwrap();
        let exec = Arc::new(exec);
        let plan = Arc::clone(&exec) as Arc<dyn ExecutionPlan>;
        let batches = runtime.block_on(collect(plan, Arc::new(TaskContext::default())));
        assert!(batches.unwrap().is_empty());
        let output = exec.take_output().unwrap();
        assert_eq!(output.metrics.rows, 9100);
        let mut all = ids(&path, &output.partitions.lengths).concat();
        all.sort_unstable();
        assert_eq!(all, (0..9100).collect::<Vec<_>>());
    }
}

#[test]
fn no_rows_are_no_bytes() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for partitioning in [by_id(3), ShufflePartitioning::Single] {
        let directory = tempfile::tempdir().unwrap();
        let input = Arc::new(EmptyExec::new(schema()));
        let options = options(directory.path());
        let exec = Arc::new(ShuffleWriterExec::try_new(input, partitioning, options).unwrap());
        let plan = Arc::clone(&exec) as Arc<dyn ExecutionPlan>;
        let collected = runtime.block_on(collect(plan, Arc::new(TaskContext::default())));
        collected.unwrap();
        let lengths = exec.take_output().unwrap().partitions.lengths;
        assert!(lengths.iter().all(|length| *length == 0));
    }
}

#[test]
fn rows_without_columns_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let path = options.data_path.clone();
    let pool: Arc<dyn MemoryPool> = CountingPool::new(0);
    let schema = Arc::new(Schema::empty());
    let partitioning = ShufflePartitioning::RoundRobin {
        partitions: 7,
        start: 0,
    };
    let mut writer =
        ShuffleWriter::new(Arc::clone(&schema), &partitioning, &pool, options).unwrap();
    for rows in [10, 0, 13] {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options);
        writer.insert_batch(&batch.unwrap()).unwrap();
    }
    let output = writer.finish().unwrap();
    let partitions = read(&path, &schema, &output.partitions.lengths);
    let mut rows: Vec<_> = partitions
        .iter()
        .map(|blocks| blocks[0].num_rows())
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [3, 3, 3, 3, 3, 4, 4]);
}
