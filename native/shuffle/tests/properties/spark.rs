//! A Spark that grants, denies and takes back as it likes.

use std::sync::{Arc, Mutex};

use comet_memory::{MemoryError, SparkMemory};
use comet_shuffle_writer::SpillHandle;

use crate::values::Random;

/// Denies one request in some, in part or whole, but not endlessly: whoever spills and asks again
/// gets something at last.
pub struct MoodySpark {
    mood: Mutex<Mood>,
}

struct Mood {
    random: Random,
    deny_one_in: usize,
    spill_one_in: usize,
    denied: usize,
    held: usize,
    spill: Option<SpillHandle>,
}

/// A rounded request, the exact one, and once more both.
const MAX_DENIED: usize = 4;

impl std::fmt::Debug for MoodySpark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MoodySpark")
    }
}

impl MoodySpark {
    /// 0 is never.
    pub fn new(seed: u64, deny_one_in: usize, spill_one_in: usize) -> Arc<Self> {
        Arc::new(Self {
            mood: Mutex::new(Mood {
                random: Random::new(seed),
                deny_one_in,
                spill_one_in,
                denied: 0,
                held: 0,
                spill: None,
            }),
        })
    }

    pub fn spills(&self, handle: Option<SpillHandle>) {
        self.mood.lock().unwrap().spill = handle;
    }

    pub fn held(&self) -> usize {
        self.mood.lock().unwrap().held
    }
}

impl Mood {
    fn strikes(&mut self, one_in: usize) -> bool {
        one_in > 0 && self.random.one_in(one_in)
    }
}

impl SparkMemory for MoodySpark {
    fn acquire(&self, bytes: usize) -> Result<usize, MemoryError> {
        let spill = {
            let mut mood = self.mood.lock().unwrap();
            let one_in = mood.spill_one_in;
            if mood.strikes(one_in) {
                mood.spill.clone()
            } else {
                None
            }
        };
        if let Some(spill) = spill {
            // Its failures are the writer's, too.
            let _ = spill.spill(1);
        }
        let mut mood = self.mood.lock().unwrap();
        let one_in = mood.deny_one_in;
        let granted = if mood.denied < MAX_DENIED && mood.strikes(one_in) {
            mood.denied += 1;
            mood.random.below(bytes)
        } else {
            mood.denied = 0;
            bytes
        };
        mood.held += granted;
        Ok(granted)
    }

    fn release(&self, bytes: usize) -> Result<(), MemoryError> {
        let mut mood = self.mood.lock().unwrap();
        mood.held = mood.held.checked_sub(bytes).unwrap();
        Ok(())
    }

    fn task_limit(&self) -> Result<usize, MemoryError> {
        Ok(usize::MAX / 2)
    }
}
