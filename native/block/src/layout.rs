//! Checks of a record batch message against the schema, before Arrow sees it.
//!
//! Arrow validates the contents of arrays, but takes it for granted that the buffers which a
//! message lists lie within the body and are as long as the array needs, and panics when not.

use arrow_ipc::{Buffer, FieldNode, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::{BlockError, BlockHeader};

/// Checks that the nodes and buffers of `batch` are those that `schema` has, and lie in a body of
/// `body_length` bytes.
pub(crate) fn check(
    batch: &RecordBatch<'_>,
    schema: &Schema,
    body_length: usize,
) -> Result<(), BlockError> {
    if batch.compression().is_some() {
        return Err(BlockError::corrupt("compressed record batch body"));
    }
    if batch.variadicBufferCounts().is_some_and(|c| !c.is_empty()) {
        return Err(BlockError::corrupt("record batch with variadic buffers"));
    }
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(BlockError::corrupt("record batch without nodes or buffers"));
    };
    let mut walk = Walk {
        nodes: nodes.iter(),
        buffers: buffers.iter(),
        body_length: u64::try_from(body_length).unwrap_or(u64::MAX),
    };
    let rows = non_negative(batch.length(), "rows")?;
    for field in schema.fields() {
        let length = walk.column(field)?;
        if length != rows {
            return Err(walk_error(field, "rows", rows, length));
        }
    }
    if walk.nodes.next().is_some() || walk.buffers.next().is_some() {
        return Err(BlockError::corrupt(
            "record batch with more columns than the schema",
        ));
    }
    Ok(())
}

struct Walk<N, B> {
    nodes: N,
    buffers: B,
    body_length: u64,
}

impl<'a, N, B> Walk<N, B>
where
    N: Iterator<Item = &'a FieldNode>,
    B: Iterator<Item = &'a Buffer>,
{
    /// Checks one column with its children and returns its number of rows.
    fn column(&mut self, field: &Field) -> Result<u64, BlockError> {
        let node = self
            .nodes
            .next()
            .ok_or_else(|| BlockError::corrupt(format!("no node for {:?}", field.name())))?;
        let length = non_negative(node.length(), "array length")?;
        let nulls = non_negative(node.null_count(), "null count")?;
        // Null arrays and empty structs take no bytes, so only this bounds them.
        if length > BlockHeader::MAX_LENGTH || nulls > length {
            return Err(BlockError::corrupt(format!(
                "array {:?} of length {length} with {nulls} nulls",
                field.name()
            )));
        }
        if field.data_type() == &DataType::Null {
            return Ok(length);
        }
        let bitmap = length.div_ceil(8);
        self.buffer(field, "validity", if nulls > 0 { bitmap } else { 0 })?;
        match field.data_type() {
            DataType::Boolean => {
                self.buffer(field, "values", bitmap)?;
            }
            DataType::Binary | DataType::Utf8 => {
                self.offsets(field, length, 4)?;
                self.buffer(field, "values", 0)?;
            }
            DataType::LargeBinary | DataType::LargeUtf8 => {
                self.offsets(field, length, 8)?;
                self.buffer(field, "values", 0)?;
            }
            DataType::List(child) | DataType::Map(child, _) => {
                self.offsets(field, length, 4)?;
                self.column(child)?;
            }
            DataType::LargeList(child) => {
                self.offsets(field, length, 8)?;
                self.column(child)?;
            }
            DataType::FixedSizeList(child, size) => {
                let items = length.saturating_mul(u64::from(size.unsigned_abs()));
                let found = self.column(child)?;
                if found != items {
                    return Err(walk_error(field, "items", items, found));
                }
            }
            DataType::Struct(children) => {
                for child in children {
                    let found = self.column(child)?;
                    if found != length {
                        return Err(walk_error(child, "rows", length, found));
                    }
                }
            }
            DataType::FixedSizeBinary(size) => {
                let width = u64::from(size.unsigned_abs());
                self.buffer(field, "values", length.saturating_mul(width))?;
            }
            primitive => {
                let width = primitive.primitive_width().ok_or_else(|| {
                    BlockError::Unsupported(format!("type {primitive} in a block"))
                })?;
                let width = u64::try_from(width).unwrap_or(u64::MAX);
                self.buffer(field, "values", length.saturating_mul(width))?;
            }
        }
        Ok(length)
    }

    /// Checks that the next buffer holds the offsets of an array of `length` values. Arrow lets an
    /// empty array have none, but panics on part of an offset.
    fn offsets(&mut self, field: &Field, length: u64, width: u64) -> Result<(), BlockError> {
        let least = if length == 0 {
            0
        } else {
            (length + 1).saturating_mul(width)
        };
        let found = self.buffer(field, "offsets", least)?;
        if !found.is_multiple_of(width) {
            return Err(walk_error(field, "offsets", least, found));
        }
        Ok(())
    }

    /// Checks that the next buffer lies in the body and has at least `least` bytes; returns its
    /// length.
    fn buffer(&mut self, field: &Field, what: &str, least: u64) -> Result<u64, BlockError> {
        let buffer = self
            .buffers
            .next()
            .ok_or_else(|| BlockError::corrupt(format!("no {what} for {:?}", field.name())))?;
        let offset = non_negative(buffer.offset(), "buffer offset")?;
        let length = non_negative(buffer.length(), "buffer length")?;
        if offset.saturating_add(length) > self.body_length {
            return Err(BlockError::corrupt(format!(
                "{what} of {:?} lie at {offset}, {length} bytes, in a body of {} bytes",
                field.name(),
                self.body_length
            )));
        }
        if length < least {
            return Err(walk_error(field, what, least, length));
        }
        Ok(length)
    }
}

fn non_negative(value: i64, what: &str) -> Result<u64, BlockError> {
    u64::try_from(value).map_err(|_| BlockError::corrupt(format!("negative {what}: {value}")))
}

fn walk_error(field: &Field, what: &str, expected: u64, found: u64) -> BlockError {
    BlockError::corrupt(format!(
        "{what} of {:?}: expected {expected}, found {found}",
        field.name()
    ))
}
