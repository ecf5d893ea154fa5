//! What one consumer holds and what it cost.

use std::fmt;

/// The counters of one consumer of a task's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerStats {
    /// The consumer's name.
    pub name: String,
    /// Whether it can spill.
    pub can_spill: bool,
    /// The bytes that it holds.
    pub used: usize,
    /// The most bytes that it held at once.
    pub peak: usize,
    /// The number of requests to Spark.
    pub acquire_calls: u64,
    /// The bytes that Spark granted, over all requests.
    pub acquired_bytes: u64,
    /// The number of releases to Spark.
    pub release_calls: u64,
    /// The bytes that Spark got back, over all releases.
    pub released_bytes: u64,
    /// The number of requests that were denied, by Spark or by the pool.
    pub denied: u64,
    /// The nanoseconds spent inside of calls into Spark.
    pub spark_nanos: u64,
}

impl ConsumerStats {
    /// The names of what a row of the table shows.
    pub(crate) const COLUMNS: [&'static str; 10] = [
        "consumer",
        "spills",
        "used",
        "peak",
        "acquires",
        "acquired",
        "releases",
        "released",
        "denied",
        "ms in Spark",
    ];
}

impl fmt::Display for ConsumerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} | {} | {} | {} | {} | {} | {} | {} | {} | {:.3}",
            self.name,
            if self.can_spill { "yes" } else { "no" },
            self.used,
            self.peak,
            self.acquire_calls,
            self.acquired_bytes,
            self.release_calls,
            self.released_bytes,
            self.denied,
            std::time::Duration::from_nanos(self.spark_nanos).as_secs_f64() * 1e3,
        )
    }
}

/// A consumer that is registered with a pool.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) stats: ConsumerStats,
    /// The part of `stats.used` that Spark did not grant: a `grow` cannot say no.
    pub(crate) unbacked: usize,
    /// Requests that are on their way to Spark: they count against the consumer's share.
    pub(crate) pending: usize,
}

impl Account {
    /// Books `granted` bytes from Spark and `unbacked` ones.
    pub(crate) fn credit(&mut self, granted: usize, unbacked: usize) {
        let stats = &mut self.stats;
        stats.used = stats.used.saturating_add(granted).saturating_add(unbacked);
        stats.peak = stats.peak.max(stats.used);
        self.unbacked = self.unbacked.saturating_add(unbacked);
    }

    /// Takes back up to `bytes`. Returns what of it has to go back to Spark, and what the account
    /// didn't have.
    pub(crate) fn debit(&mut self, bytes: usize) -> Debit {
        let taken = bytes.min(self.stats.used);
        self.stats.used -= taken;
        let unbacked = taken.min(self.unbacked);
        self.unbacked -= unbacked;
        Debit {
            to_spark: taken - unbacked,
            missing: bytes - taken,
        }
    }
}

pub(crate) struct Debit {
    pub(crate) to_spark: usize,
    pub(crate) missing: usize,
}
