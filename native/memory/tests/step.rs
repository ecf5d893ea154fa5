//! Reservations in steps over a fake Spark.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::sync::Arc;

use comet_memory::{DEFAULT_STEP, MemoryError, StepReservation, TaskMemoryPool};
use common::{FakeSpark, fair, greedy, register};

#[test]
fn additions_share_a_step() {
    let spark = FakeSpark::new(10 << 20);
    let pool = greedy(&spark);
    let reservation = StepReservation::new(register(&pool, "one", true), DEFAULT_STEP, None);
    for addition in 1..=40 {
        reservation.try_grow(1000).unwrap();
        assert_eq!(reservation.used(), addition * 1000);
    }
    assert_eq!((spark.acquires(), spark.held()), (1, DEFAULT_STEP));
    reservation.try_grow(DEFAULT_STEP).unwrap();
    assert_eq!(
        (spark.acquires(), reservation.reserved()),
        (2, 2 * DEFAULT_STEP)
    );
    assert_eq!(reservation.free().unwrap(), 2 * DEFAULT_STEP);
    assert_eq!((spark.releases(), spark.held()), (1, 0));
}

#[test]
fn one_byte_steps_are_exact() {
    let spark = FakeSpark::new(1 << 20);
    let pool = greedy(&spark);
    let reservation = StepReservation::new(register(&pool, "one", true), 1, None);
    for _ in 0..40 {
        reservation.try_grow(100).unwrap();
        assert_eq!(reservation.used(), reservation.reserved());
    }
    assert_eq!(spark.acquires(), 40);
}

#[test]
fn the_step_never_exceeds_an_eighth_of_the_limit() {
    let spark = FakeSpark::new(1 << 30);
    let pool = greedy(&spark);
    for (limit, step) in [
        (16 << 20, 1 << 20),
        (1 << 20, 1 << 17),
        (80, 10),
        (7, 1),
        (0, 1),
    ] {
        let reservation = register(&pool, "one", true);
        let reservation = StepReservation::new(reservation, DEFAULT_STEP, Some(limit));
        assert_eq!(reservation.step(), step, "limit {limit}");
    }
}

#[test]
fn a_denied_step_is_retried_exactly() {
    let spark = FakeSpark::new(1500);
    let pool = greedy(&spark);
    let reservation = StepReservation::new(register(&pool, "one", true), 1000, None);
    reservation.try_grow(900).unwrap();
    reservation.try_grow(400).unwrap();
    assert_eq!((spark.acquires(), reservation.reserved()), (3, 1300));
    let error = reservation.try_grow(201).unwrap_err();
    assert!(matches!(
        error,
        MemoryError::Denied {
            requested: 201,
            available: 200,
            ..
        }
    ));
    assert_eq!((reservation.used(), reservation.reserved()), (1300, 1300));
    reservation.try_grow(200).unwrap();
    assert_eq!(spark.held(), 1500);
    pool.check().unwrap();
}

#[test]
fn releasing_more_than_is_used_is_an_error() {
    let spark = FakeSpark::new(1500);
    let pool = greedy(&spark);
    let reservation = StepReservation::new(register(&pool, "one", true), 1000, None);
    reservation.try_grow(900).unwrap();
    assert!(reservation.shrink(901).is_err());
    assert!(reservation.release(901).is_err());
    assert_eq!((reservation.used(), reservation.reserved()), (900, 1000));
    assert_eq!(reservation.release(800).unwrap(), 900);
    assert_eq!((reservation.used(), spark.held()), (100, 100));
}

#[test]
fn a_spill_inside_of_a_request_is_seen() {
    let spark = FakeSpark::new(1000);
    let pool = fair(&spark);
    let reservation = Arc::new(StepReservation::new(register(&pool, "one", true), 1, None));
    reservation.try_grow(600).unwrap();
    let spilled = Arc::clone(&reservation);
    let hook: Box<dyn Fn() + Send + Sync> = Box::new(move || {
        // Spark asks us, on this thread, to spill what the first addition was for.
        if spilled.used() >= 600 {
            spilled.release(600).unwrap();
        }
    });
    *spark.on_acquire.lock().unwrap() = Some(Arc::new(hook));
    reservation.try_grow(300).unwrap();
    assert_eq!(reservation.used(), 300);
    assert_eq!(reservation.reserved(), spark.held());
    reservation.free().unwrap();
    assert_eq!(spark.held(), 0);
    pool.check().unwrap();
}

#[test]
fn growth_and_release_from_many_threads() {
    let spark = FakeSpark::new(50_000);
    let pool = greedy(&spark);
    let reservation = StepReservation::new(register(&pool, "one", true), 4096, None);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    if reservation.try_grow(777).is_ok() {
                        reservation.release(777).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(reservation.used(), 0);
    reservation.free().unwrap();
    assert_eq!(spark.held(), 0);
    pool.check().unwrap();
}
