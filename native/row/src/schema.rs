//! Spark's types, and the Arrow types that carry them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};

use crate::error::RowError;

/// A Spark SQL data type, as it shapes the bytes of an UnsafeRow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SparkType {
    /// `void`: every value is null.
    Null,
    /// `boolean`.
    Boolean,
    /// `tinyint`, 8 bits.
    Byte,
    /// `smallint`, 16 bits.
    Short,
    /// `int`, 32 bits.
    Int,
    /// `bigint`, 64 bits.
    Long,
    /// `float`, 32 bits.
    Float,
    /// `double`, 64 bits.
    Double,
    /// `decimal`.
    Decimal {
        /// Decimal digits, 1 to 38. Up to 18 a value is a long, above it has up to 16 bytes.
        precision: u8,
        /// Digits after the point; negative for multiples of a power of ten.
        scale: i8,
    },
    /// `string` of any collation: bytes that are UTF-8 by convention only.
    String,
    /// `binary`.
    Binary,
    /// `date`: days since 1970-01-01.
    Date,
    /// `timestamp`: microseconds since 1970-01-01T00:00Z.
    Timestamp,
    /// `timestamp_ntz`: microseconds since 1970-01-01T00:00 of an unnamed time zone.
    TimestampNtz,
    /// `time`: nanoseconds of the day.
    Time,
    /// `interval year to month`: months.
    YearMonthInterval,
    /// `interval day to second`: microseconds.
    DayTimeInterval,
    /// `interval`: months, days and microseconds.
    CalendarInterval,
    /// `variant`: a value and its metadata.
    Variant,
    /// `struct`.
    Struct(Vec<SparkField>),
    /// `array` of an element type.
    Array(Box<SparkType>),
    /// `map` of a key and a value type.
    Map(Box<SparkType>, Box<SparkType>),
}

/// A named column or struct member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparkField {
    /// The name; names may repeat.
    pub name: String,
    /// The type.
    pub data_type: SparkType,
}

/// The columns of a row, with their Arrow schema.
///
/// Made by [`SparkSchema::parse`] only, so that nesting and decimals are known to be sane.
#[derive(Debug, Clone)]
pub struct SparkSchema {
    fields: Vec<SparkField>,
    arrow: SchemaRef,
}

impl SparkSchema {
    /// Reads the binary descriptor that the JVM sends.
    ///
    /// ```text
    /// schema = u32 field count, field*          (little-endian)
    /// field  = u16 name length, name in UTF-8, type
    /// type   = u8 tag, then
    ///          8 decimal: u8 precision, i8 scale      20 array: type
    ///          19 struct: u32 field count, field*     21 map: key type, value type
    /// ```
    ///
    /// Tags: 0 null, 1 boolean, 2 byte, 3 short, 4 int, 5 long, 6 float, 7 double, 8 decimal,
    /// 9 string, 10 binary, 11 date, 12 timestamp, 13 timestamp_ntz, 14 time, 15 year-month
    /// interval, 16 day-time interval, 17 calendar interval, 18 variant, 19 struct, 20 array, 21 map.
    ///
    /// # Errors
    ///
    /// [`RowError::Descriptor`] if the bytes end early or late, a tag is unknown, a count exceeds
    /// what the bytes can hold, a decimal is out of range, or types nest deeper than 128 levels.
    pub fn parse(descriptor: &[u8]) -> Result<SparkSchema, RowError> {
        let fields = crate::descriptor::parse(descriptor)?;
        let arrow = Arc::new(Schema::new(arrow_fields(&fields)));
        Ok(SparkSchema { fields, arrow })
    }

    /// The columns in row order.
    pub fn fields(&self) -> &[SparkField] {
        &self.fields
    }

    /// The schema of the batches that come out. Every field is nullable, except a map's entries and
    /// keys, as Arrow demands. Strings are `Binary` with the field metadata `spark.type` = `string`.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }
}

impl SparkType {
    /// Bytes of one element in an array of this type.
    pub(crate) fn element_width(&self) -> usize {
        match self {
            Self::Boolean | Self::Byte => 1,
            Self::Short => 2,
            Self::Int | Self::Float | Self::Date | Self::YearMonthInterval => 4,
            _ => 8,
        }
    }

    /// The Arrow type that carries values of this type.
    pub(crate) fn arrow_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Boolean => DataType::Boolean,
            Self::Byte => DataType::Int8,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Self::String | Self::Binary => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Time => DataType::Time64(TimeUnit::Nanosecond),
            Self::YearMonthInterval => DataType::Interval(IntervalUnit::YearMonth),
            Self::DayTimeInterval => DataType::Duration(TimeUnit::Microsecond),
            Self::CalendarInterval => DataType::Struct(calendar_fields()),
            Self::Variant => DataType::Struct(variant_fields()),
            Self::Struct(fields) => DataType::Struct(arrow_fields(fields)),
            Self::Array(element) => DataType::List(arrow_field("element", element, true)),
            Self::Map(key, value) => {
                let entries = DataType::Struct(entry_fields(key, value));
                DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
            }
        }
    }
}

/// The Arrow field of a value; strings are marked, since `Binary` alone doesn't tell.
pub(crate) fn arrow_field(name: &str, data_type: &SparkType, nullable: bool) -> FieldRef {
    let field = Field::new(name, data_type.arrow_type(), nullable);
    Arc::new(if *data_type == SparkType::String {
        field.with_metadata(HashMap::from([(
            "spark.type".to_owned(),
            "string".to_owned(),
        )]))
    } else {
        field
    })
}

/// The Arrow fields of a struct or of a whole row.
pub(crate) fn arrow_fields(fields: &[SparkField]) -> Fields {
    fields
        .iter()
        .map(|field| arrow_field(&field.name, &field.data_type, true))
        .collect()
}

/// The fields of a map's entries.
pub(crate) fn entry_fields(key: &SparkType, value: &SparkType) -> Fields {
    Fields::from(vec![
        arrow_field("key", key, false),
        arrow_field("value", value, true),
    ])
}

/// The fields that carry a calendar interval.
pub(crate) fn calendar_fields() -> Fields {
    Fields::from(vec![
        Field::new("months", DataType::Int32, true),
        Field::new("days", DataType::Int32, true),
        Field::new("microseconds", DataType::Int64, true),
    ])
}

/// The fields that carry a variant.
pub(crate) fn variant_fields() -> Fields {
    Fields::from(vec![
        Field::new("value", DataType::Binary, true),
        Field::new("metadata", DataType::Binary, true),
    ])
}
