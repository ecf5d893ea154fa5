//! Whatever is asked for in whatever order: the books balance.
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

use comet_memory::{StepReservation, TaskMemoryPool};
use common::{FakeSpark, fair, greedy, register};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    TryGrow(usize, usize),
    Grow(usize, usize),
    Shrink(usize, usize),
    Free(usize),
    OverShrink(usize),
    Limit(usize),
    Break(bool),
    Renew(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..3_usize;
    let step = prop_oneof![
        6 => (who.clone(), 0..2000_usize).prop_map(|(who, bytes)| Step::TryGrow(who, bytes)),
        1 => (who.clone(), 0..500_usize).prop_map(|(who, bytes)| Step::Grow(who, bytes)),
        3 => (who.clone(), 0..2000_usize).prop_map(|(who, bytes)| Step::Shrink(who, bytes)),
        1 => who.clone().prop_map(Step::Free),
        1 => who.clone().prop_map(Step::OverShrink),
        1 => (0..6000_usize).prop_map(Step::Limit),
        1 => any::<bool>().prop_map(Step::Break),
        1 => who.prop_map(Step::Renew),
    ];
    prop::collection::vec(step, 0..80)
}

fn run<P: TaskMemoryPool>(
    pool: Arc<P>,
    spark: &FakeSpark,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let mut who: Vec<_> = (0..3).map(|n| register(&pool, "c", n < 2)).collect();
    for step in steps {
        match step {
            Step::TryGrow(n, bytes) => {
                let before = (who[n].size(), pool.reserved());
                if who[n].try_grow(bytes).is_err() {
                    prop_assert_eq!((who[n].size(), pool.reserved()), before);
                }
            }
            Step::Grow(n, bytes) => who[n].grow(bytes),
            Step::Shrink(n, bytes) => {
                let bytes = bytes.min(who[n].size());
                who[n].shrink(bytes);
            }
            Step::Free(n) => {
                who[n].free();
            }
            Step::OverShrink(n) => {
                prop_assert!(who[n].try_shrink(who[n].size() + 1).is_err());
            }
            Step::Limit(limit) => spark.limit.store(limit, Ordering::SeqCst),
            Step::Break(broken) => spark.broken.store(broken.into(), Ordering::SeqCst),
            Step::Renew(n) => who[n] = register(&pool, "c", n < 2),
        }
        let sizes: usize = who.iter().map(|one| one.size()).sum();
        prop_assert_eq!(pool.reserved(), sizes);
        if pool.check().is_ok() {
            prop_assert_eq!(spark.held(), sizes);
        } else {
            prop_assert!(spark.held() <= sizes);
        }
    }
    drop(who);
    prop_assert_eq!(spark.held(), 0);
    prop_assert_eq!(pool.reserved(), 0);
    for stats in pool.stats() {
        prop_assert_eq!(stats.acquired_bytes, stats.released_bytes);
        prop_assert_eq!(stats.used, 0);
    }
    Ok(())
}

proptest! {
    #[test]
    fn greedy_balances(steps in steps()) {
        let spark = FakeSpark::new(5000);
        run(greedy(&spark), &spark, steps)?;
    }

    #[test]
    fn fair_balances(steps in steps()) {
        let spark = FakeSpark::new(5000);
        run(fair(&spark), &spark, steps)?;
    }

    #[test]
    fn steps_balance(
        step in 0..1500_usize,
        limit in prop::option::of(0..20_000_usize),
        changes in prop::collection::vec((0..4_u8, 0..1500_usize), 0..80),
    ) {
        let spark = FakeSpark::new(5000);
        let pool = greedy(&spark);
        let reservation = StepReservation::new(register(&pool, "c", true), step, limit);
        let mut used = 0;
        for (change, bytes) in changes {
            match change {
                0 | 1 => match reservation.try_grow(bytes) {
                    Ok(()) => used += bytes,
                    // Denied only if the exact bytes don't fit.
                    Err(_) => prop_assert!(used + bytes > 5000),
                },
                2 => {
                    let bytes = bytes.min(used);
                    reservation.shrink(bytes).unwrap();
                    used -= bytes;
                }
                _ => {
                    let bytes = bytes.min(used);
                    reservation.release(bytes).unwrap();
                    used -= bytes;
                    prop_assert_eq!(reservation.reserved(), used);
                }
            }
            prop_assert_eq!(reservation.used(), used);
            prop_assert!(reservation.reserved() >= used);
            prop_assert_eq!(reservation.reserved(), spark.held());
        }
        let releases = spark.releases();
        let reserved = reservation.reserved();
        prop_assert_eq!(reservation.free().unwrap(), reserved);
        prop_assert_eq!(spark.releases() - releases, usize::from(reserved > 0));
        drop(reservation);
        prop_assert_eq!(spark.held(), 0);
        prop_assert!(pool.check().is_ok());
    }
}
