//! Writes UnsafeRows as Spark does.

use comet_row::{SparkField, SparkType};

use super::Value;

/// A row or struct.
pub fn row(fields: &[SparkField], values: &[Value]) -> Vec<u8> {
    assert_eq!(fields.len(), values.len());
    let null_bytes = fields.len().div_ceil(64) * 8;
    let mut out = vec![0; null_bytes + fields.len() * 8];
    for (index, (field, value)) in fields.iter().zip(values).enumerate() {
        if *value == Value::Null {
            out[index / 8] |= 1 << (index % 8);
        }
        slot(
            &field.data_type,
            value,
            null_bytes + index * 8,
            8,
            true,
            &mut out,
        );
    }
    out
}

/// An array.
fn array(element: &SparkType, values: &[Value]) -> Vec<u8> {
    let width = width(element);
    let start = 8 + values.len().div_ceil(64) * 8;
    let mut out = vec![0; (start + values.len() * width).next_multiple_of(8)];
    out[..8].copy_from_slice(&(values.len() as u64).to_le_bytes());
    for (index, value) in values.iter().enumerate() {
        if *value == Value::Null {
            out[8 + index / 8] |= 1 << (index % 8);
        }
        slot(
            element,
            value,
            start + index * width,
            width,
            false,
            &mut out,
        );
    }
    out
}

fn map(key: &SparkType, value: &SparkType, keys: &[Value], values: &[Value]) -> Vec<u8> {
    let keys = array(key, keys);
    let mut out = (keys.len() as u64).to_le_bytes().to_vec();
    out.extend(keys);
    out.extend(array(value, values));
    out
}

fn width(data_type: &SparkType) -> usize {
    match data_type {
        SparkType::Boolean | SparkType::Byte => 1,
        SparkType::Short => 2,
        SparkType::Int | SparkType::Float | SparkType::Date => 4,
        SparkType::YearMonthInterval => 4,
        _ => 8,
    }
}

/// Writes one value. In rows, wide decimals and calendar intervals have 16 bytes even when null.
fn slot(ty: &SparkType, value: &Value, at: usize, width: usize, in_row: bool, out: &mut Vec<u8>) {
    let wide = matches!(
        ty,
        SparkType::Decimal {
            precision: 19..,
            ..
        }
    );
    let blob = match value {
        Value::Null if in_row && (wide || *ty == SparkType::CalendarInterval) => {
            let size = if wide { 0 } else { 16 };
            return append(&[0; 16], size, at, out);
        }
        Value::Null => return,
        Value::Boolean(v) => return fixed(&[u8::from(*v)], at, width, out),
        Value::Byte(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Short(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Int(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Long(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Float(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Double(v) => return fixed(&v.to_le_bytes(), at, width, out),
        Value::Decimal(v) if !wide => return fixed(&(*v as i64).to_le_bytes(), at, width, out),
        Value::Decimal(v) => {
            let bytes = minimal(*v);
            let size = bytes.len();
            let mut padded = bytes;
            padded.resize(if in_row { 16 } else { size }, 0);
            return append(&padded, size, at, out);
        }
        Value::Bytes(bytes) => bytes.clone(),
        Value::Calendar(months, days, micros) => [
            &months.to_le_bytes()[..],
            &days.to_le_bytes(),
            &micros.to_le_bytes(),
        ]
        .concat(),
        Value::Variant(value, metadata) => {
            [&(value.len() as u32).to_le_bytes()[..], value, metadata].concat()
        }
        Value::Struct(values) => match ty {
            SparkType::Struct(fields) => row(fields, values),
            _ => panic!("a struct for {ty:?}"),
        },
        Value::Array(values) => match ty {
            SparkType::Array(element) => array(element, values),
            _ => panic!("an array for {ty:?}"),
        },
        Value::Map(keys, values) => match ty {
            SparkType::Map(key, value) => map(key, value, keys, values),
            _ => panic!("a map for {ty:?}"),
        },
    };
    append(&blob, blob.len(), at, out);
}

fn fixed(bytes: &[u8], at: usize, width: usize, out: &mut [u8]) {
    assert!(bytes.len() <= width);
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

fn append(bytes: &[u8], size: usize, at: usize, out: &mut Vec<u8>) {
    let slot = (out.len() as u64) << 32 | size as u64;
    out[at..at + 8].copy_from_slice(&slot.to_le_bytes());
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(8), 0);
}

/// What Java's `BigInteger.toByteArray` gives.
fn minimal(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let spare = (0..15)
        .take_while(|i| {
            let sign = if bytes[i + 1] & 0x80 == 0 { 0 } else { 0xff };
            bytes[*i] == sign
        })
        .count();
    bytes[spare..].to_vec()
}
