//! A Spark of a fixed size.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use comet_memory::{FairUnifiedPool, GreedyUnifiedPool, MemoryError, SparkMemory};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

type Hook = Box<dyn Fn() + Send + Sync>;

/// Grants what it has left, in part too, as Spark does.
pub struct FakeSpark {
    pub limit: AtomicUsize,
    pub held: AtomicUsize,
    pub acquires: AtomicUsize,
    pub releases: AtomicUsize,
    pub broken: AtomicUsize,
    /// Called inside of every acquire: Spark asking somebody to spill.
    pub on_acquire: Mutex<Option<Arc<Hook>>>,
}

impl std::fmt::Debug for FakeSpark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FakeSpark({:?} of {:?})", self.held, self.limit)
    }
}

impl FakeSpark {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.into(),
            held: 0.into(),
            acquires: 0.into(),
            releases: 0.into(),
            broken: 0.into(),
            on_acquire: Mutex::new(None),
        })
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    pub fn acquires(&self) -> usize {
        self.acquires.load(Ordering::SeqCst)
    }

    pub fn releases(&self) -> usize {
        self.releases.load(Ordering::SeqCst)
    }
}

impl SparkMemory for FakeSpark {
    fn acquire(&self, bytes: usize) -> Result<usize, MemoryError> {
        self.acquires.fetch_add(1, Ordering::SeqCst);
        let hook = self.on_acquire.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook();
        }
        if self.broken.load(Ordering::SeqCst) > 0 {
            return Err(MemoryError::Spark(Arc::from(Box::from("task killed"))));
        }
        let limit = self.limit.load(Ordering::SeqCst);
        let before = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
                Some(held + bytes.min(limit.saturating_sub(held)))
            })
            .unwrap();
        Ok(bytes.min(limit.saturating_sub(before)))
    }

    fn release(&self, bytes: usize) -> Result<(), MemoryError> {
        self.releases.fetch_add(1, Ordering::SeqCst);
        self.held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |held| {
                held.checked_sub(bytes)
            })
            .expect("more released to Spark than acquired");
        Ok(())
    }

    fn task_limit(&self) -> Result<usize, MemoryError> {
        Ok(self.limit.load(Ordering::SeqCst))
    }
}

pub fn greedy(spark: &Arc<FakeSpark>) -> Arc<GreedyUnifiedPool> {
    Arc::new(GreedyUnifiedPool::new(
        Arc::clone(spark) as Arc<dyn SparkMemory>
    ))
}

pub fn fair(spark: &Arc<FakeSpark>) -> Arc<FairUnifiedPool> {
    Arc::new(FairUnifiedPool::new(
        Arc::clone(spark) as Arc<dyn SparkMemory>
    ))
}

pub fn register<P: MemoryPool>(pool: &Arc<P>, name: &str, can_spill: bool) -> MemoryReservation {
    let pool = Arc::clone(pool) as Arc<dyn MemoryPool>;
    MemoryConsumer::new(name)
        .with_can_spill(can_spill)
        .register(&pool)
}
