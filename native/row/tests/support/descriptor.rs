//! Writes schema descriptors as the JVM does.

use comet_row::{SparkField, SparkType};

pub fn encode(fields: &[SparkField]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_fields(fields, &mut out);
    out
}

fn encode_fields(fields: &[SparkField], out: &mut Vec<u8>) {
    out.extend((fields.len() as u32).to_le_bytes());
    for field in fields {
        out.extend((field.name.len() as u16).to_le_bytes());
        out.extend(field.name.as_bytes());
        encode_type(&field.data_type, out);
    }
}

fn encode_type(data_type: &SparkType, out: &mut Vec<u8>) {
    let tag = match data_type {
        SparkType::Null => 0,
        SparkType::Boolean => 1,
        SparkType::Byte => 2,
        SparkType::Short => 3,
        SparkType::Int => 4,
        SparkType::Long => 5,
        SparkType::Float => 6,
        SparkType::Double => 7,
        SparkType::Decimal { .. } => 8,
        SparkType::String => 9,
        SparkType::Binary => 10,
        SparkType::Date => 11,
        SparkType::Timestamp => 12,
        SparkType::TimestampNtz => 13,
        SparkType::Time => 14,
        SparkType::YearMonthInterval => 15,
        SparkType::DayTimeInterval => 16,
        SparkType::CalendarInterval => 17,
        SparkType::Variant => 18,
        SparkType::Struct(_) => 19,
        SparkType::Array(_) => 20,
        SparkType::Map(..) => 21,
    };
    out.push(tag);
    match data_type {
        SparkType::Decimal { precision, scale } => out.extend([*precision, *scale as u8]),
        SparkType::Struct(fields) => encode_fields(fields, out),
        SparkType::Array(element) => encode_type(element, out),
        SparkType::Map(key, value) => {
            encode_type(key, out);
            encode_type(value, out);
        }
        _ => {}
    }
}
