use std::error::Error;
use std::sync::Arc;

use datafusion_common::DataFusionError;

/// Why memory could not be had, or why the accounting of a task can no longer be trusted.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Spark, or the consumer's share of the task's memory, has no room for the request.
    #[error("{consumer}: {requested} bytes requested, {available} available ({used} in use)")]
    Denied {
        /// The consumer that asked.
        consumer: String,
        /// What it asked for in bytes.
        requested: usize,
        /// What could have been had in bytes.
        available: usize,
        /// What the consumer already holds in bytes.
        used: usize,
    },
    /// A consumer gave back more than it held.
    #[error("{consumer}: {released} bytes released of {used} in use")]
    OverRelease {
        /// The consumer.
        consumer: String,
        /// What it gave back in bytes.
        released: usize,
        /// What it held in bytes.
        used: usize,
    },
    /// A consumer went away with memory that it had not given back.
    #[error("{consumer}: {used} bytes not released")]
    Leak {
        /// The consumer.
        consumer: String,
        /// What it still held in bytes.
        used: usize,
    },
    /// The call into Spark failed.
    #[error("call into Spark's memory manager failed: {0}")]
    Spark(Arc<dyn Error + Send + Sync>),
}

impl MemoryError {
    /// Whether a spill may help.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }

    /// The memory error that a DataFusion error carries, else the error as one of Spark's side.
    pub fn from_datafusion(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Self>() {
                Ok(memory) => *memory,
                Err(inner) => Self::Spark(Arc::from(inner)),
            },
            // Another pool than ours below the reservation.
            DataFusionError::ResourcesExhausted(message) => Self::Denied {
                consumer: message,
                requested: 0,
                available: 0,
                used: 0,
            },
            other => Self::Spark(Arc::new(other)),
        }
    }
}

impl From<MemoryError> for DataFusionError {
    fn from(error: MemoryError) -> Self {
        Self::External(Box::new(error))
    }
}
