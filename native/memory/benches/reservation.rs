//! What an addition costs with and without steps, the call into Spark left out.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use comet_memory::{DEFAULT_STEP, FairUnifiedPool, MemoryError, SparkMemory, StepReservation};
use criterion::{Criterion, criterion_group, criterion_main};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool};

#[derive(Debug)]
struct Unlimited;

impl SparkMemory for Unlimited {
    fn acquire(&self, bytes: usize) -> Result<usize, MemoryError> {
        Ok(bytes)
    }

    fn release(&self, _bytes: usize) -> Result<(), MemoryError> {
        Ok(())
    }

    fn task_limit(&self) -> Result<usize, MemoryError> {
        Ok(usize::MAX)
    }
}

fn reservation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1000 additions of 8 KiB");
    for (name, step) in [("1 MiB steps", DEFAULT_STEP), ("exact", 1)] {
        group.bench_function(name, |bencher| {
            let pool: Arc<dyn MemoryPool> = Arc::new(FairUnifiedPool::new(Arc::new(Unlimited)));
            let consumer = MemoryConsumer::new("writer").with_can_spill(true);
            let reservation = StepReservation::new(consumer.register(&pool), step, None);
            bencher.iter(|| {
                for _ in 0..1000 {
                    reservation.try_grow(8192).unwrap();
                }
                reservation.free().unwrap()
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = reservation
}
criterion_main!(benches);
