//! What can go wrong, in words that say where.

use arrow_schema::ArrowError;

/// Why a schema, a page or a batch of rows was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The schema descriptor isn't what this version of the library reads.
    #[error(
        "invalid schema descriptor at byte {offset}: {detail}; the JVM and native parts of Comet \
         Shuffle must come from the same build"
    )]
    Descriptor {
        /// Where in the descriptor reading stopped, in bytes.
        offset: usize,
        /// What was found there.
        detail: String,
    },

    /// A row's bytes contradict themselves or the schema.
    #[error("malformed UnsafeRow in column `{column}`: {detail}")]
    Malformed {
        /// Path of the column, nested names joined by dots; `<row>` for the row as a whole.
        column: String,
        /// What doesn't fit.
        detail: String,
    },

    /// A row page's length fields contradict its size.
    #[error("malformed row page at byte {offset}: {detail}")]
    Page {
        /// Where in the page the bad row begins, in bytes.
        offset: usize,
        /// What doesn't fit.
        detail: String,
    },

    /// The batch may hold more bytes than Arrow's 32-bit offsets can address. Nothing was built:
    /// split the rows in halves and call again.
    #[error(
        "{rows} rows of {bytes} bytes together exceed the {limit} bytes that one batch can \
         address; transpose fewer rows at a time"
    )]
    BatchTooLarge {
        /// Rows in the refused batch.
        rows: usize,
        /// Bytes of these rows.
        bytes: usize,
        /// The most bytes that a batch may have.
        limit: usize,
    },

    /// A row of a batch would be larger than Spark's rows can be.
    #[error(
        "row {row} of a batch takes {bytes} bytes, more than the {limit} that Spark's rows can have"
    )]
    RowTooLarge {
        /// Which row of the batch, from 0.
        row: usize,
        /// Bytes that it takes.
        bytes: usize,
        /// The most bytes of a row.
        limit: usize,
    },

    /// Arrow refused the finished columns, which is a defect of this library.
    #[error("Arrow refused the transposed batch: {0}")]
    Arrow(#[from] ArrowError),
}

impl RowError {
    /// A malformed value whose column is filled in on the way up, by [`RowError::within`].
    #[cold]
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::Malformed {
            column: String::new(),
            detail: detail.into(),
        }
    }

    /// Puts the name of an enclosing column before the path.
    #[cold]
    pub(crate) fn within(self, parent: &str) -> Self {
        match self {
            Self::Malformed { column, detail } => {
                let column = if column.is_empty() {
                    parent.to_owned()
                } else {
                    format!("{parent}.{column}")
                };
                Self::Malformed { column, detail }
            }
            other => other,
        }
    }

    /// Names the row itself where no column was named.
    #[cold]
    pub(crate) fn or_whole_row(self) -> Self {
        match self {
            Self::Malformed { column, detail } if column.is_empty() => Self::Malformed {
                column: "<row>".to_owned(),
                detail,
            },
            other => other,
        }
    }
}
