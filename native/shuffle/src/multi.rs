use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use comet_memory::StepReservation;
use datafusion_execution::memory_pool::MemoryReservation;

use crate::metrics::{nanos_since, wide};
use crate::partition::{Partitioner, written, written_schema};
use crate::staging::{MAX_GROUP_BYTES, Staging};
use crate::{PartitionOutput, Result, ShuffleMetrics, ShuffleWriterOptions};

/// Spreads batches over partitions: stages them, and when memory is denied, `max_buffer_bytes` is
/// reached or the input ends, sorts references to their rows by partition and gathers these column
/// by column into blocks.
///
/// The staged batches are behind a lock that is never held while memory is requested or released:
/// Spark, which answers such calls, may at the same time wait for a spill of this very
/// repartitioner, from any thread.
#[derive(Debug)]
pub struct MultiPartitionShuffleRepartitioner {
    partitioner: Box<dyn Partitioner>,
    ids: Vec<u32>,
    max_buffer_bytes: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    staging: Mutex<Staging>,
    /// The thread that has `staging`.
    owner: Mutex<Option<ThreadId>>,
    /// Set when the final file is written, which frees everything anyway.
    finishing: AtomicBool,
    /// Spills whose batches are gone and whose memory is on its way back.
    releasing: AtomicUsize,
    reservation: StepReservation,
}

/// Makes a repartitioner spill, from any thread.
#[derive(Debug, Clone)]
pub struct SpillHandle(Weak<Shared>);

impl std::fmt::Debug for dyn Partitioner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partitioner({})", self.partitions())
    }
}

impl SpillHandle {
    /// Spills if anything is staged, and returns the bytes given back to the pool: all of what was
    /// staged, which may be more or less than `bytes`. It is 0 if the writer is writing its final
    /// file, if it is gone, or if this thread is inside of it, in the middle of moving rows.
    ///
    /// # Errors
    ///
    /// If the spill file cannot be written. The writer fails then, too.
    pub fn spill(&self, bytes: usize) -> Result<usize> {
        match self.0.upgrade() {
            Some(shared) if bytes > 0 => shared.spill(),
            _ => Ok(0),
        }
    }
}

impl MultiPartitionShuffleRepartitioner {
    /// A repartitioner of batches of `schema`, whose memory comes from `reservation`.
    ///
    /// # Errors
    ///
    /// If blocks cannot hold the schema or the codec cannot be set up.
    pub fn new(
        schema: SchemaRef,
        partitioner: Box<dyn Partitioner>,
        reservation: MemoryReservation,
        options: ShuffleWriterOptions,
    ) -> Result<Self> {
        let limit = options.max_buffer_bytes;
        let reservation = StepReservation::new(reservation, options.reservation_step, limit);
        let schema = written_schema(&schema, partitioner.as_ref())?;
        let staging = Staging::new(schema, partitioner.partitions(), options)?;
        Ok(Self {
            partitioner,
            ids: Vec::new(),
            max_buffer_bytes: limit.unwrap_or(usize::MAX),
            shared: Arc::new(Shared {
                staging: Mutex::new(staging),
                owner: Mutex::new(None),
                finishing: AtomicBool::new(false),
                releasing: AtomicUsize::new(0),
                reservation,
            }),
        })
    }

    /// Stages `batch`.
    ///
    /// # Errors
    ///
    /// If a key cannot be evaluated, a spill fails, or memory is denied with nothing left to spill.
    pub fn insert_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let started = Instant::now();
        self.partitioner.assign(batch, &mut self.ids)?;
        let batch = &written(batch, self.partitioner.as_ref())?;
        let nanos = nanos_since(started);
        let partitioner_bytes = self.partitioner.memory_size();
        let (buffered, full) = loop {
            let (price, overhead, generation) = {
                let staging = self.shared.lock();
                staging.check()?;
                let price = staging.price(batch);
                let overhead = staging.overhead_with(price) + partitioner_bytes;
                let growth = overhead.saturating_sub(staging.overhead);
                (price, growth, staging.generation)
            };
            if let Err(denied) = self.shared.reservation.try_grow(price + overhead) {
                if !denied.is_denied() {
                    return Err(denied.into());
                }
                if self.shared.spill()? > 0 || self.shared.spilled_since(generation) {
                    continue;
                }
                return Err(denied.into());
            }
            let mut staging = self.shared.lock();
            if staging.generation == generation {
                staging.overhead += overhead;
                staging.stage(batch, &self.ids, price);
                let metrics = &mut staging.scratch.metrics;
                metrics.input_batches += 1;
                metrics.rows += wide(batch.num_rows());
                metrics.partition_nanos += nanos;
                break (staging.buffered_bytes(), staging.is_group_full());
            }
            // Spilled in between: what the batch shared with those before it is now its own.
            drop(staging);
            self.shared.reservation.shrink(price + overhead)?;
        };
        if buffered >= self.max_buffer_bytes {
            self.shared.spill()?;
        } else if full {
            self.shared.seal()?;
        }
        Ok(())
    }

    /// The bytes that are charged for what is resident: staged batches, row references, scratch.
    pub fn used(&self) -> usize {
        self.shared.reservation.used()
    }

    /// The bytes of staged batches and their row references, which `max_buffer_bytes` limits.
    pub fn buffered_bytes(&self) -> usize {
        self.shared.lock().buffered_bytes()
    }

    /// What makes this repartitioner spill.
    pub fn spill_handle(&self) -> SpillHandle {
        SpillHandle(Arc::downgrade(&self.shared))
    }

    /// Writes the final file and gives all memory back.
    ///
    /// # Errors
    ///
    /// If a file cannot be written or read, or the task is killed. No file is left then.
    pub fn finish(self) -> Result<(PartitionOutput, ShuffleMetrics)> {
        self.shared.finishing.store(true, Ordering::SeqCst);
        let (output, metrics, staged) = {
            let mut staging = self.shared.lock();
            let output = staging.finish();
            let staged = staging.clear();
            (output, staging.scratch.metrics, staged)
        };
        drop(staged);
        // A spill that is giving its bytes back must not find them gone.
        self.shared.await_releases();
        self.shared.reservation.free()?;
        Ok((output?, metrics))
    }
}

impl Shared {
    fn lock(&self) -> StagingGuard<'_> {
        // A panic cannot leave rows half moved that anybody would write: it ends the task.
        let staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        *self.owner() = Some(thread::current().id());
        StagingGuard {
            owner: &self.owner,
            staging,
        }
    }

    fn owner(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spill(&self) -> Result<usize> {
        let finishing = self.finishing.load(Ordering::SeqCst);
        if finishing || *self.owner() == Some(thread::current().id()) {
            return Ok(0);
        }
        let (staged, bytes) = {
            let mut staging = self.lock();
            let spilled = staging.spill()?;
            self.releasing.fetch_add(1, Ordering::SeqCst);
            spilled
        };
        drop(staged);
        let released = match bytes {
            0 => Ok(0),
            _ => self.reservation.release(bytes),
        };
        self.releasing.fetch_sub(1, Ordering::SeqCst);
        Ok(released?)
    }

    /// Brings the batches that are in no group into the order of their partitions, if there is memory
    /// for that and they are not too large. Else they stay as they are, which is slower to write.
    fn seal(&self) -> Result<()> {
        let (expected, generation) = {
            let mut staging = self.lock();
            // Another thread may have made this writer spill meanwhile.
            if !staging.is_group_full() {
                return Ok(());
            }
            let expected = staging.seal_bytes()?;
            if expected > MAX_GROUP_BYTES {
                staging.postpone_seal();
                return Ok(());
            }
            (expected, staging.generation)
        };
        if let Err(denied) = self.reservation.try_grow(expected) {
            if !denied.is_denied() {
                return Err(denied.into());
            }
            self.lock().postpone_seal();
            return Ok(());
        }
        let sealed = {
            let mut staging = self.lock();
            if staging.generation == generation {
                Some(staging.seal(expected)?)
            } else {
                None
            }
        };
        let (batches, spare) = sealed.unwrap_or((Vec::new(), expected));
        drop(batches);
        self.reservation.shrink(spare)?;
        Ok(())
    }

    /// Whether another thread made this writer spill since `generation`; its memory is back then.
    fn spilled_since(&self, generation: u64) -> bool {
        let spilled = self.lock().generation != generation;
        if spilled {
            self.await_releases();
        }
        spilled
    }

    /// Waits, holding no lock, for releases by other threads, which wait for nothing of ours.
    fn await_releases(&self) {
        while self.releasing.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
    }
}

/// The staging lock, and whose it is.
struct StagingGuard<'a> {
    owner: &'a Mutex<Option<ThreadId>>,
    staging: MutexGuard<'a, Staging>,
}

impl std::ops::Deref for StagingGuard<'_> {
    type Target = Staging;

    fn deref(&self) -> &Staging {
        &self.staging
    }
}

impl std::ops::DerefMut for StagingGuard<'_> {
    fn deref_mut(&mut self) -> &mut Staging {
        &mut self.staging
    }
}

impl Drop for StagingGuard<'_> {
    fn drop(&mut self) {
        // Before the lock itself goes, which happens after this.
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use comet_block::Codec;
    use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};

    use super::*;
    use crate::ShufflePartitioning;

    #[test]
    fn a_group_that_was_spilled_before_it_is_sealed_is_none() {
        let field = Field::new("id", DataType::Int32, false);
        let schema = Arc::new(Schema::new(vec![field]));
        let partitioning = ShufflePartitioning::RoundRobin {
            partitions: 2,
            start: 0,
        };
        let partitioner = partitioning.partitioner(&schema).unwrap();
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let reservation = MemoryConsumer::new("test").register(&pool);
        let options = ShuffleWriterOptions::new("unused".into(), Codec::None);
        let writer =
            MultiPartitionShuffleRepartitioner::new(schema, partitioner, reservation, options)
                .unwrap();
        writer.shared.seal().unwrap();
        assert_eq!(writer.used(), 0);
    }
}
