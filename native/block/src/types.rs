//! Which Arrow types blocks hold.

use arrow_schema::{DataType, Field, Schema};

use crate::BlockError;

/// Checks that blocks can hold every column of a schema.
///
/// What is left out (dictionaries, unions, run ends, views) has no Spark type, and needs more than
/// one message or a payload layout that the reader would have to check separately.
pub(crate) fn check_supported(schema: &Schema) -> Result<(), BlockError> {
    schema.fields().iter().try_for_each(|field| check(field))
}

fn check(field: &Field) -> Result<(), BlockError> {
    match field.data_type() {
        DataType::List(child) | DataType::LargeList(child) => check(child),
        DataType::FixedSizeList(child, size) if *size > 0 => check(child),
        DataType::FixedSizeBinary(size) if *size > 0 => Ok(()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => check(entries),
            _ => Err(unsupported(field)),
        },
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field)),
        DataType::Null
        | DataType::Boolean
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::Utf8
        | DataType::LargeUtf8 => Ok(()),
        other if other.is_primitive() => Ok(()),
        _ => Err(unsupported(field)),
    }
}

fn unsupported(field: &Field) -> BlockError {
    BlockError::Unsupported(format!(
        "field {:?} of type {}",
        field.name(),
        field.data_type()
    ))
}

/// The largest alignment of buffers within a payload in bytes.
pub(crate) const MAX_ALIGNMENT: usize = 16;

/// The alignment of buffers within a payload: small, since small blocks are mostly padding, but
/// such that the reader can use every buffer where it lies.
pub(crate) fn alignment(schema: &Schema) -> usize {
    let widest = schema.fields().iter().any(|field| has_wide(field));
    if widest { MAX_ALIGNMENT } else { 8 }
}

fn has_wide(field: &Field) -> bool {
    match field.data_type() {
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => true,
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => has_wide(child),
        DataType::Struct(fields) => fields.iter().any(|field| has_wide(field)),
        _ => false,
    }
}
