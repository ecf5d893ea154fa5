//! Exact use, reserved in steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion_execution::memory_pool::MemoryReservation;

use crate::MemoryError;

/// The step of reservations: 1 MiB.
pub const DEFAULT_STEP: usize = 1 << 20;

/// Tracks the exact bytes in use and reserves memory for them in steps, so that many small
/// additions share one call into Spark.
///
/// All methods take `&self` and none holds a lock while the pool is called: Spark may answer a
/// request by making the owner spill, which releases from this reservation before the request
/// returns.
#[derive(Debug)]
pub struct StepReservation {
    reservation: MemoryReservation,
    step: usize,
    sizes: Mutex<Sizes>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    used: usize,
    reserved: usize,
}

impl StepReservation {
    /// Takes over `reservation`, which should be empty. A step of 0 counts as 1; with a limit the
    /// step is at most an eighth of it, so that rounding up stays small beside the limit.
    pub fn new(
        reservation: MemoryReservation,
        step: usize,
        max_buffer_bytes: Option<usize>,
    ) -> Self {
        let cap = max_buffer_bytes.map_or(usize::MAX, |limit| limit / 8);
        let reserved = reservation.size();
        Self {
            reservation,
            step: step.min(cap).max(1),
            sizes: Mutex::new(Sizes { used: 0, reserved }),
        }
    }

    /// The bytes in use, exactly.
    pub fn used(&self) -> usize {
        self.sizes().used
    }

    /// The bytes reserved: at least those in use.
    pub fn reserved(&self) -> usize {
        self.sizes().reserved
    }

    /// The step in bytes.
    pub fn step(&self) -> usize {
        self.step
    }

    /// Adds `bytes` to those in use. What is not reserved yet is requested rounded up to the step
    /// and, if that is denied, exactly.
    ///
    /// # Errors
    ///
    /// The pool's error for the exact request; nothing has changed then.
    pub fn try_grow(&self, bytes: usize) -> Result<(), MemoryError> {
        let mut round_up = true;
        loop {
            let Some(deficit) = self.take(bytes) else {
                return Ok(());
            };
            let rounded = deficit.checked_next_multiple_of(self.step);
            let request = rounded.filter(|_| round_up).unwrap_or(deficit);
            match self.reservation.try_grow(request) {
                Ok(()) => {
                    // The loop looks again, since a spill may have released meanwhile.
                    let mut sizes = self.sizes();
                    sizes.reserved = sizes.reserved.saturating_add(request);
                }
                Err(error) if request == deficit => {
                    return Err(MemoryError::from_datafusion(error));
                }
                Err(_) => round_up = false,
            }
        }
    }

    /// Uses `bytes` of what is reserved, or says how much is missing.
    fn take(&self, bytes: usize) -> Option<usize> {
        let mut sizes = self.sizes();
        let wanted = sizes.used.saturating_add(bytes);
        match wanted.checked_sub(sizes.reserved) {
            None | Some(0) => {
                sizes.used = wanted;
                None
            }
            deficit => deficit,
        }
    }

    /// Takes `bytes` off those in use and keeps them reserved for what comes next.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OverRelease`] if fewer are in use; nothing has changed then.
    pub fn shrink(&self, bytes: usize) -> Result<(), MemoryError> {
        let mut sizes = self.sizes();
        match sizes.used.checked_sub(bytes) {
            Some(used) => {
                sizes.used = used;
                Ok(())
            }
            None => Err(MemoryError::OverRelease {
                consumer: self.reservation.consumer().name().to_owned(),
                released: bytes,
                used: sizes.used,
            }),
        }
    }

    /// Takes `bytes` off those in use and gives back everything that is reserved beyond the rest,
    /// in one release. Returns the bytes given back.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OverRelease`] if fewer are in use; nothing has changed then.
    pub fn release(&self, bytes: usize) -> Result<usize, MemoryError> {
        self.shrink(bytes)?;
        self.give_back()
    }

    /// Gives everything back in one release and returns how many bytes that was.
    ///
    /// # Errors
    ///
    /// As the pool reports.
    pub fn free(&self) -> Result<usize, MemoryError> {
        self.sizes().used = 0;
        self.give_back()
    }

    fn give_back(&self) -> Result<usize, MemoryError> {
        let spare = {
            let mut sizes = self.sizes();
            let spare = sizes.reserved.saturating_sub(sizes.used);
            sizes.reserved -= spare;
            spare
        };
        if spare > 0 {
            self.reservation
                .try_shrink(spare)
                .map_err(MemoryError::from_datafusion)?;
        }
        Ok(spare)
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        // Plain numbers: usable whatever happened while the lock was held.
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
