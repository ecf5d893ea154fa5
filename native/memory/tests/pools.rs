//! The pools over a fake Spark.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use comet_memory::{MemoryError, TaskMemoryPool};
use common::{FakeSpark, fair, greedy, register};
use datafusion_execution::memory_pool::MemoryPool;

#[test]
fn greedy_grants_what_spark_grants() {
    let spark = FakeSpark::new(100);
    let pool = greedy(&spark);
    let one = register(&pool, "one", true);
    let two = register(&pool, "two", true);
    one.try_grow(70).unwrap();
    let error = two.try_grow(31).unwrap_err();
    assert!(MemoryError::from_datafusion(error).is_denied());
    assert_eq!(spark.held(), 70, "a partial grant goes back");
    two.try_grow(30).unwrap();
    assert_eq!(pool.reserved(), 100);
    drop(one);
    drop(two);
    assert_eq!((pool.reserved(), spark.held()), (0, 0));
    pool.check().unwrap();
}

#[test]
fn fair_divides_what_the_task_may_have() {
    let spark = FakeSpark::new(1000);
    let pool = fair(&spark);
    let fixed = register(&pool, "fixed", false);
    fixed.try_grow(100).unwrap();
    let one = register(&pool, "one", true);
    one.try_grow(900).unwrap();
    one.shrink(900);
    let two = register(&pool, "two", true);
    one.try_grow(451).unwrap_err();
    one.try_grow(450).unwrap();
    one.try_grow(1).unwrap_err();
    two.try_grow(450).unwrap();
    assert_eq!(spark.held(), 1000);
    // What the task may have shrinks as other tasks start, and grows again.
    two.shrink(450);
    spark.limit.store(500, Ordering::SeqCst);
    two.try_grow(201).unwrap_err();
    spark.limit.store(1000, Ordering::SeqCst);
    two.try_grow(201).unwrap();
    drop(one);
    two.try_grow(699).unwrap();
    two.try_grow(1).unwrap_err();
    pool.check().unwrap();
}

#[test]
fn fair_counts_requests_on_their_way() {
    let spark = FakeSpark::new(100);
    let pool = fair(&spark);
    let one = Arc::new(register(&pool, "one", true));
    let other = Arc::clone(&one);
    let hook: Box<dyn Fn() + Send + Sync> = Box::new(move || {
        // Asked while the first 60 are on their way: together they'd exceed the share. The pool
        // refuses before Spark is asked, so that this doesn't recurse.
        other.try_grow(60).unwrap_err();
    });
    *spark.on_acquire.lock().unwrap() = Some(Arc::new(hook));
    one.try_grow(60).unwrap();
    assert_eq!((spark.acquires(), spark.held()), (1, 60));
}

#[test]
fn a_denied_grow_fails_the_task_cleanly() {
    let spark = FakeSpark::new(100);
    let pool = greedy(&spark);
    let one = register(&pool, "one", true);
    one.grow(150);
    assert_eq!((one.size(), pool.reserved(), spark.held()), (150, 150, 100));
    assert!(pool.check().unwrap_err().is_denied());
    one.try_grow(1).unwrap_err();
    one.shrink(60);
    assert_eq!((pool.reserved(), spark.held()), (90, 90));
    one.free();
    assert_eq!((pool.reserved(), spark.held()), (0, 0));
    assert!(pool.check().is_err(), "the first failure stays");
}

#[test]
fn an_over_shrink_fails_the_task_cleanly() {
    let spark = FakeSpark::new(100);
    let pool = greedy(&spark);
    let one = register(&pool, "one", true);
    one.try_grow(40).unwrap();
    // Behind the reservation's back, which checks by itself.
    pool.shrink(&one, 50);
    assert_eq!(spark.held(), 0);
    assert!(matches!(
        pool.check(),
        Err(MemoryError::OverRelease {
            released: 50,
            used: 40,
            ..
        })
    ));
    drop(one);
    assert_eq!(spark.held(), 0);
}

#[test]
fn a_consumer_that_leaves_with_memory_gives_it_back() {
    let spark = FakeSpark::new(100);
    let pool = fair(&spark);
    let one = register(&pool, "one", true);
    one.try_grow(40).unwrap();
    pool.unregister(one.consumer());
    assert_eq!((spark.held(), pool.reserved()), (0, 0));
    assert!(matches!(
        pool.check(),
        Err(MemoryError::Leak { used: 40, .. })
    ));
    std::mem::drop(one);
    assert_eq!(spark.held(), 0);
}

#[test]
fn a_failing_call_is_reported_and_holds_nothing() {
    let spark = FakeSpark::new(100);
    let pool = greedy(&spark);
    let one = register(&pool, "one", true);
    spark.broken.store(1, Ordering::SeqCst);
    let error = MemoryError::from_datafusion(one.try_grow(10).unwrap_err());
    assert_eq!(
        error.to_string(),
        "call into Spark's memory manager failed: task killed"
    );
    assert!(!error.is_denied());
    assert_eq!(pool.reserved(), 0);
    pool.check().unwrap();
}

#[test]
fn counters_and_table() {
    let spark = FakeSpark::new(100);
    let pool = fair(&spark);
    let one = register(&pool, "writer", true);
    one.try_grow(50).unwrap();
    one.try_grow(30).unwrap();
    one.try_grow(30).unwrap_err();
    one.shrink(20);
    let stats = pool.stats();
    assert_eq!(stats.len(), 1);
    let writer = &stats[0];
    assert_eq!((writer.acquire_calls, writer.acquired_bytes), (2, 80));
    assert_eq!((writer.release_calls, writer.released_bytes), (1, 20));
    assert_eq!((writer.used, writer.peak, writer.denied), (60, 80, 1));
    assert!(writer.spark_nanos > 0);
    assert!(
        pool.table()
            .contains("writer | yes | 60 | 80 | 2 | 80 | 1 | 20 | 1")
    );
    drop(one);
    let stats = pool.stats();
    assert_eq!((stats[0].used, stats[0].released_bytes), (0, 80));
    assert_eq!(pool.name(), "fair_unified");
}

#[test]
fn many_threads_balance() {
    let spark = FakeSpark::new(10_000);
    let pool = fair(&spark);
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let pool = &pool;
            scope.spawn(move || {
                let reservation = register(pool, &format!("{thread}"), true);
                for round in 0..500 {
                    if reservation.try_grow(100 + thread * round % 1700).is_err() {
                        reservation.free();
                    }
                }
            });
        }
    });
    assert_eq!((spark.held(), pool.reserved()), (0, 0));
    pool.check().unwrap();
    let stats = pool.stats();
    assert!(
        stats
            .iter()
            .all(|stats| stats.acquired_bytes == stats.released_bytes)
    );
}
