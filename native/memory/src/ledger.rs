//! The books of one task: who holds what, and the first thing that went wrong.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion_execution::memory_pool::MemoryConsumer;

use crate::account::{Account, ConsumerStats};
use crate::{MemoryError, SparkMemory};

/// The accounts of a task's consumers over Spark's memory.
///
/// The lock guards the numbers only: it is never held while Spark is called.
#[derive(Debug)]
pub(crate) struct Ledger {
    spark: Arc<dyn SparkMemory>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    open: HashMap<usize, Account>,
    /// The counters of consumers that have gone.
    closed: Vec<ConsumerStats>,
    failure: Option<MemoryError>,
}

/// What the books say when somebody asks for more.
pub(crate) struct Holdings {
    /// What the consumer holds or has asked for.
    pub(crate) own: usize,
    /// What consumers that cannot spill hold or have asked for, if this one can; else what all
    /// others have.
    pub(crate) unspillable: usize,
    /// The number of consumers that can spill.
    pub(crate) spillable_consumers: usize,
}

impl Ledger {
    pub(crate) fn new(spark: Arc<dyn SparkMemory>) -> Self {
        Self {
            spark,
            books: Mutex::default(),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // A panic elsewhere while the lock was held: the numbers are plain data, still usable.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, consumer: &MemoryConsumer) {
        let account = Account {
            stats: ConsumerStats {
                name: consumer.name().to_owned(),
                can_spill: consumer.can_spill(),
                ..ConsumerStats::default()
            },
            ..Account::default()
        };
        self.books().open.insert(consumer.id(), account);
    }

    /// Closes the account. What the consumer still holds goes back to Spark, and is an error.
    pub(crate) fn close(&self, consumer: &MemoryConsumer) {
        let used = self
            .books()
            .open
            .get(&consumer.id())
            .map_or(0, |account| account.stats.used);
        if used > 0 {
            self.fail(MemoryError::Leak {
                consumer: consumer.name().to_owned(),
                used,
            });
            self.release(consumer, used);
        }
        let mut books = self.books();
        if let Some(account) = books.open.remove(&consumer.id()) {
            books.closed.push(account.stats);
        }
    }

    /// Acquires exactly `bytes`, or nothing. `admit` may refuse before Spark is asked: it returns
    /// what would be available.
    pub(crate) fn acquire(
        &self,
        consumer: &MemoryConsumer,
        bytes: usize,
        admit: impl FnOnce(&Holdings) -> Result<(), usize>,
    ) -> Result<(), MemoryError> {
        self.check()?;
        let used = {
            let mut books = self.books();
            let holdings = books.holdings(consumer);
            let account = books.account(consumer);
            if let Err(available) = admit(&holdings) {
                account.stats.denied += 1;
                return Err(denied(consumer, bytes, available, account.stats.used));
            }
            account.pending = account.pending.saturating_add(bytes);
            account.stats.used
        };
        let granted = self.call_acquire(consumer, bytes);
        let mut books = self.books();
        let account = books.account(consumer);
        account.pending = account.pending.saturating_sub(bytes);
        match granted {
            Ok(granted) if granted >= bytes => {
                account.credit(bytes, 0);
                Ok(())
            }
            Ok(granted) => {
                account.stats.denied += 1;
                drop(books);
                if granted > 0 {
                    self.call_release(consumer, granted);
                }
                Err(denied(consumer, bytes, granted, used))
            }
            Err(error) => Err(error),
        }
    }

    /// Acquires `bytes` although nobody can be told if they are not granted: the task fails then.
    pub(crate) fn acquire_or_fail(&self, consumer: &MemoryConsumer, bytes: usize) {
        let (granted, error) = match self.call_acquire(consumer, bytes) {
            Ok(granted) => (granted.min(bytes), None),
            Err(error) => (0, Some(error)),
        };
        let mut books = self.books();
        let account = books.account(consumer);
        account.credit(granted, bytes - granted);
        if granted < bytes {
            account.stats.denied += 1;
            let used = account.stats.used - bytes;
            drop(books);
            self.fail(error.unwrap_or_else(|| denied(consumer, bytes, granted, used)));
        }
    }

    /// Gives back `bytes`; more than the consumer holds fails the task.
    pub(crate) fn release(&self, consumer: &MemoryConsumer, bytes: usize) {
        let (debit, used) = {
            let mut books = self.books();
            let account = books.account(consumer);
            let used = account.stats.used;
            (account.debit(bytes), used)
        };
        if debit.to_spark > 0 {
            self.call_release(consumer, debit.to_spark);
        }
        if debit.missing > 0 {
            self.fail(MemoryError::OverRelease {
                consumer: consumer.name().to_owned(),
                released: bytes,
                used,
            });
        }
    }

    fn call_acquire(&self, consumer: &MemoryConsumer, bytes: usize) -> Result<usize, MemoryError> {
        let started = Instant::now();
        let granted = self.spark.acquire(bytes);
        let elapsed = started.elapsed();
        let mut books = self.books();
        let stats = &mut books.account(consumer).stats;
        stats.acquire_calls += 1;
        stats.spark_nanos = stats.spark_nanos.saturating_add(nanos(elapsed));
        if let Ok(granted) = &granted {
            stats.acquired_bytes = stats.acquired_bytes.saturating_add(wide(*granted));
        }
        granted
    }

    fn call_release(&self, consumer: &MemoryConsumer, bytes: usize) {
        let started = Instant::now();
        let released = self.spark.release(bytes);
        let elapsed = started.elapsed();
        {
            let mut books = self.books();
            let stats = &mut books.account(consumer).stats;
            stats.release_calls += 1;
            stats.released_bytes = stats.released_bytes.saturating_add(wide(bytes));
            stats.spark_nanos = stats.spark_nanos.saturating_add(nanos(elapsed));
        }
        if let Err(error) = released {
            self.fail(error);
        }
    }

    /// Asks Spark what the task may have, on the consumer's clock.
    pub(crate) fn task_limit(&self, consumer: &MemoryConsumer) -> Result<usize, MemoryError> {
        let started = Instant::now();
        let limit = self.spark.task_limit();
        let elapsed = started.elapsed();
        let mut books = self.books();
        let stats = &mut books.account(consumer).stats;
        stats.spark_nanos = stats.spark_nanos.saturating_add(nanos(elapsed));
        limit
    }

    fn fail(&self, error: MemoryError) {
        self.books().failure.get_or_insert(error);
    }

    pub(crate) fn check(&self) -> Result<(), MemoryError> {
        self.books().failure.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn reserved(&self) -> usize {
        let books = self.books();
        let used = books.open.values().map(|account| account.stats.used);
        used.fold(0, usize::saturating_add)
    }

    pub(crate) fn stats(&self) -> Vec<ConsumerStats> {
        let books = self.books();
        let mut open: Vec<_> = books.open.iter().collect();
        open.sort_unstable_by_key(|(id, _)| **id);
        let open = open.into_iter().map(|(_, account)| &account.stats);
        books.closed.iter().chain(open).cloned().collect()
    }

    pub(crate) fn table(&self) -> String {
        let mut table = ConsumerStats::COLUMNS.join(" | ");
        for stats in self.stats() {
            // Writing to a string cannot fail.
            let _ = write!(table, "\n{stats}");
        }
        table
    }
}

impl Books {
    /// A consumer that was never registered gets an account too: its bytes must count.
    fn account(&mut self, consumer: &MemoryConsumer) -> &mut Account {
        self.open.entry(consumer.id()).or_insert_with(|| Account {
            stats: ConsumerStats {
                name: consumer.name().to_owned(),
                can_spill: consumer.can_spill(),
                ..ConsumerStats::default()
            },
            ..Account::default()
        })
    }

    fn holdings(&mut self, consumer: &MemoryConsumer) -> Holdings {
        let account = self.account(consumer);
        let own = account.stats.used.saturating_add(account.pending);
        let mut holdings = Holdings {
            own,
            unspillable: 0,
            spillable_consumers: 0,
        };
        for (id, account) in &self.open {
            holdings.spillable_consumers += usize::from(account.stats.can_spill);
            let counts = !account.stats.can_spill || !consumer.can_spill();
            if counts && *id != consumer.id() {
                let held = account.stats.used.saturating_add(account.pending);
                holdings.unspillable = holdings.unspillable.saturating_add(held);
            }
        }
        holdings
    }
}

fn denied(
    consumer: &MemoryConsumer,
    requested: usize,
    available: usize,
    used: usize,
) -> MemoryError {
    MemoryError::Denied {
        consumer: consumer.name().to_owned(),
        requested,
        available,
        used,
    }
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
