//! The memory of one Spark task, for native code: pools, step reservations and counters.
//!
//! ```text
//!  StepReservation   exact bytes in use, reserved in steps of 1 MiB
//!        |
//!  MemoryPool        GreedyUnifiedPool or FairUnifiedPool: who has what, and may have more
//!        |
//!  SparkMemory       acquire and release: the bridge implements it over JNI, tests as a fake
//! ```
//!
//! Everything here belongs to one task. No lock is held across a call into Spark, since Spark may
//! answer a request for memory by asking the same consumer, on the same thread or on another one,
//! to spill. Nothing panics: what a `MemoryPool` cannot report as an error (a denied `grow`, a
//! release of more than was acquired) is remembered, fails every later request and is returned
//! by `check`, which the task calls before it commits.

mod account;
mod error;
mod ledger;
mod pools;
mod spark;
mod step;

pub use account::ConsumerStats;
pub use error::MemoryError;
pub use pools::{FairUnifiedPool, GreedyUnifiedPool, TaskMemoryPool};
pub use spark::SparkMemory;
pub use step::{DEFAULT_STEP, StepReservation};
