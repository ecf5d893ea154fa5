use std::fmt::Debug;

use crate::MemoryError;

/// Spark's memory manager as one task sees it.
///
/// Implementations may block, and may call back into the consumers of the task to make them spill,
/// before they return.
pub trait SparkMemory: Debug + Send + Sync {
    /// Asks for `bytes` and returns what was granted: at most `bytes`, possibly less, possibly 0.
    /// What is granted is held until it is released, also if it is less than what was asked for.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Spark`] if the call fails, for instance because the task was killed while it
    /// waited. Nothing is held then.
    fn acquire(&self, bytes: usize) -> Result<usize, MemoryError>;

    /// Gives back `bytes` that were granted before.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Spark`] if the call fails.
    fn release(&self, bytes: usize) -> Result<(), MemoryError>;

    /// How many bytes this task may have at present, those that it has included: with N tasks
    /// running, an N-th of Spark's pool.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Spark`] if the call fails.
    fn task_limit(&self) -> Result<usize, MemoryError>;
}
