//! Model values, and what turns them into UnsafeRows and reads them back from Arrow.

#![allow(dead_code, missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

pub mod descriptor;
pub mod random;
pub mod read;
pub mod tables;
pub mod write;

use comet_row::{RowError, RowTransposer, SparkField, SparkSchema, SparkType, UnsafeRowRef};

/// A Spark value. Floats are bits, so that equality is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Boolean(bool),
    Byte(i8),
    Short(i16),
    /// Int, date, year-month interval.
    Int(i32),
    /// Long, timestamps, time, day-time interval.
    Long(i64),
    Float(u32),
    Double(u64),
    Decimal(i128),
    /// String and binary.
    Bytes(Vec<u8>),
    Calendar(i32, i32, i64),
    Variant(Vec<u8>, Vec<u8>),
    Struct(Vec<Value>),
    Array(Vec<Value>),
    Map(Vec<Value>, Vec<Value>),
}

pub fn field(name: &str, data_type: SparkType) -> SparkField {
    SparkField {
        name: name.to_owned(),
        data_type,
    }
}

pub fn array_of(element: SparkType) -> SparkType {
    SparkType::Array(Box::new(element))
}

pub fn map_of(key: SparkType, value: SparkType) -> SparkType {
    SparkType::Map(Box::new(key), Box::new(value))
}

pub fn schema(fields: &[SparkField]) -> SparkSchema {
    SparkSchema::parse(&descriptor::encode(fields)).unwrap()
}

pub fn transposer(fields: &[SparkField]) -> RowTransposer {
    RowTransposer::new(schema(fields)).unwrap()
}

/// Rows as they lie in a page: each with its length before it.
pub fn page(rows: &[Vec<u8>]) -> Vec<u8> {
    let mut page = Vec::new();
    for row in rows {
        page.extend((row.len() as u32).to_le_bytes());
        page.extend(row);
    }
    page
}

/// References to the rows of a page.
pub fn refs(page: &[u8]) -> Result<Vec<UnsafeRowRef>, RowError> {
    let mut refs = Vec::new();
    // SAFETY: the page is a slice, and callers keep it while they use the rows.
    unsafe { comet_row::rows_in_page(page.as_ptr(), page.len(), &mut refs) }?;
    Ok(refs)
}

/// Transposes byte strings, whatever they hold.
pub fn transpose(
    transposer: &mut RowTransposer,
    rows: &[Vec<u8>],
) -> Result<arrow_array::RecordBatch, RowError> {
    // Exact-size boxes, so that a memory checker sees each byte past a row.
    let rows: Vec<Box<[u8]>> = rows.iter().map(|row| row.as_slice().into()).collect();
    // SAFETY: the boxes outlive the call.
    let row = |row: &[u8]| unsafe { UnsafeRowRef::from_raw(row.as_ptr(), row.len()) };
    let refs: Vec<_> = rows.iter().map(|bytes| row(bytes)).collect();
    // SAFETY: as above.
    unsafe { transposer.transpose(&refs) }
}
