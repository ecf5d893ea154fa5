use arrow_schema::{ArrowError, DataType};

/// Why vectors could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The bytes or elements of a column are more than an Arrow array can address. Fewer rows may
    /// fit.
    #[error("a column of {bytes} bytes or elements, more than 2^31 - 1, in {rows} rows")]
    TooLarge {
        /// The rows of the batch.
        rows: usize,
        /// The bytes, or elements, of the column.
        bytes: u64,
    },
    /// The batch is larger than its budget. Fewer rows may fit.
    #[error("a batch that is larger than its budget")]
    OverBudget,
    /// The descriptor contradicts itself or the schema.
    #[error("malformed batch descriptor: {0}")]
    Descriptor(String),
    /// An array of the JVM's could not be read.
    #[error("reading an array of the JVM: {0}")]
    Heap(Box<dyn std::error::Error + Send + Sync>),
    /// The arrays are not what the schema says.
    #[error("imported vectors: {0}")]
    Arrow(#[from] ArrowError),
}

impl VectorError {
    pub(crate) fn kind(kind: i64, data_type: &DataType) -> Self {
        Self::Descriptor(format!("kind {kind} for a column of type {data_type}"))
    }
}
