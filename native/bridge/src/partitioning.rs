//! The partitioning that the JVM asks for.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SortOptions};
use comet_row::{RowTransposer, SparkSchema, rows_in_page};
use comet_shuffle_writer::ShufflePartitioning;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;

use crate::error::BridgeError;

/// Reads `org.apache.spark.comet.shuffle.NativePartitioning`, little-endian:
///
/// ```text
/// u8 kind, u32 partitions, then
///   0 single, 4 ids that come with each batch: nothing
///   1 hash: u32 keys, u32 column of each
///   2 range: u32 keys, (u32 column, u8 descending, u8 nulls first) of each,
///            u32 bytes and descriptor of the keys' schema,
///            u32 bytes and rows of the bounds as (u32 length, UnsafeRow)
///   3 round robin: u32 start
/// ```
pub(crate) fn parse(bytes: &[u8], schema: &Schema) -> Result<ShufflePartitioning, BridgeError> {
    let mut bytes = Bytes(bytes);
    let kind = bytes.u8()?;
    let partitions = bytes.size()?;
    Ok(match kind {
        0 => ShufflePartitioning::Single,
        1 => {
            let keys = (0..bytes.size()?).map(|_| bytes.column(schema));
            ShufflePartitioning::Hash {
                keys: keys.collect::<Result<_, _>>()?,
                partitions,
            }
        }
        2 => {
            let keys = (0..bytes.size()?).map(|_| {
                let key = bytes.column(schema)?;
                let descending = bytes.u8()? != 0;
                let nulls_first = bytes.u8()? != 0;
                Ok((
                    key,
                    SortOptions {
                        descending,
                        nulls_first,
                    },
                ))
            });
            let keys = keys.collect::<Result<_, BridgeError>>()?;
            ShufflePartitioning::Range {
                keys,
                bounds: bounds(&mut bytes)?,
                partitions,
            }
        }
        3 => ShufflePartitioning::RoundRobin {
            partitions,
            start: bytes.size()?,
        },
        4 => ShufflePartitioning::Ids { partitions },
        other => return Err(BridgeError::Argument(format!("partitioning {other}"))),
    })
}

fn bounds(bytes: &mut Bytes<'_>) -> Result<RecordBatch, BridgeError> {
    let schema = SparkSchema::parse(bytes.run()?)?;
    let page = bytes.run()?;
    let mut rows = Vec::new();
    // SAFETY: the page is a slice that outlives the rows.
    unsafe { rows_in_page(page.as_ptr(), page.len(), &mut rows) }?;
    // SAFETY: the rows lie in the page.
    Ok(unsafe { RowTransposer::new(schema)?.transpose(&rows) }?)
}

/// What is still to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BridgeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| BridgeError::Argument("the partitioning ends early".to_owned()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, BridgeError> {
        Ok(self.take(1)?.iter().fold(0, |_, byte| *byte))
    }

    fn size(&mut self) -> Result<usize, BridgeError> {
        let bytes = self.take(4)?.iter().rev();
        Ok(bytes.fold(0, |size, byte| (size << 8) | usize::from(*byte)))
    }

    /// Bytes behind their number.
    fn run(&mut self) -> Result<&'a [u8], BridgeError> {
        let count = self.size()?;
        self.take(count)
    }

    fn column(&mut self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>, BridgeError> {
        let index = self.size()?;
        let field = schema.fields().get(index);
        let field = field.ok_or_else(|| BridgeError::Argument(format!("no key column {index}")))?;
        Ok(Arc::new(Column::new(field.name(), index)))
    }
}
