//! The two pools: first come, first served; and a fair share for everyone who can spill.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use crate::ledger::{Holdings, Ledger};
use crate::{ConsumerStats, MemoryError, SparkMemory};

/// What a task asks its pool beside what DataFusion does.
pub trait TaskMemoryPool: MemoryPool {
    /// The first thing that went wrong and could not be reported where it happened. A task calls
    /// this before it commits its output.
    ///
    /// # Errors
    ///
    /// That first failure.
    fn check(&self) -> Result<(), MemoryError>;

    /// The counters of all consumers, those that have gone included.
    fn stats(&self) -> Vec<ConsumerStats>;

    /// The counters as text, a line for each consumer.
    fn table(&self) -> String;
}

/// Grants whatever Spark grants.
#[derive(Debug)]
pub struct GreedyUnifiedPool {
    ledger: Ledger,
}

/// Grants each of the N consumers that can spill up to an N-th of what the task may have, less
/// what consumers hold that cannot spill; those get whatever the others have left.
#[derive(Debug)]
pub struct FairUnifiedPool {
    ledger: Ledger,
}

impl GreedyUnifiedPool {
    /// A pool over the memory of one task.
    pub fn new(spark: Arc<dyn SparkMemory>) -> Self {
        Self {
            ledger: Ledger::new(spark),
        }
    }

    fn try_acquire(&self, consumer: &MemoryConsumer, bytes: usize) -> Result<(), MemoryError> {
        self.ledger.acquire(consumer, bytes, |_| Ok(()))
    }
}

impl FairUnifiedPool {
    /// A pool over the memory of one task.
    pub fn new(spark: Arc<dyn SparkMemory>) -> Self {
        Self {
            ledger: Ledger::new(spark),
        }
    }

    fn try_acquire(&self, consumer: &MemoryConsumer, bytes: usize) -> Result<(), MemoryError> {
        let limit = self.ledger.task_limit(consumer)?;
        self.ledger.acquire(consumer, bytes, |holdings| {
            let available = share(limit, consumer, holdings).saturating_sub(holdings.own);
            if bytes <= available {
                Ok(())
            } else {
                Err(available)
            }
        })
    }
}

/// The most that a consumer may hold.
fn share(limit: usize, consumer: &MemoryConsumer, holdings: &Holdings) -> usize {
    let divided = limit.saturating_sub(holdings.unspillable);
    if consumer.can_spill() {
        divided / holdings.spillable_consumers.max(1)
    } else {
        divided
    }
}

macro_rules! impl_pool {
    ($pool:ty, $name:literal) => {
        impl MemoryPool for $pool {
            fn name(&self) -> &str {
                $name
            }

            fn register(&self, consumer: &MemoryConsumer) {
                self.ledger.open(consumer);
            }

            fn unregister(&self, consumer: &MemoryConsumer) {
                self.ledger.close(consumer);
            }

            fn grow(&self, reservation: &MemoryReservation, additional: usize) {
                if additional > 0 {
                    self.ledger
                        .acquire_or_fail(reservation.consumer(), additional);
                }
            }

            fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
                if shrink > 0 {
                    self.ledger.release(reservation.consumer(), shrink);
                }
            }

            fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
                if additional > 0 {
                    self.try_acquire(reservation.consumer(), additional)?;
                }
                Ok(())
            }

            fn reserved(&self) -> usize {
                self.ledger.reserved()
            }

            fn memory_limit(&self) -> MemoryLimit {
                // It changes as other tasks come and go.
                MemoryLimit::Unknown
            }
        }

        impl TaskMemoryPool for $pool {
            fn check(&self) -> Result<(), MemoryError> {
                self.ledger.check()
            }

            fn stats(&self) -> Vec<ConsumerStats> {
                self.ledger.stats()
            }

            fn table(&self) -> String {
                self.ledger.table()
            }
        }

        impl fmt::Display for $pool {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}(reserved: {})", $name, self.ledger.reserved())
            }
        }
    };
}

impl_pool!(GreedyUnifiedPool, "greedy_unified");
impl_pool!(FairUnifiedPool, "fair_unified");
