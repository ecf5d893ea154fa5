//! One growing Arrow column per Spark type.
//!
//! A column is filled by `begin`, any number of `append`s, and `finish`. An error leaves it half
//! filled, which the next `begin` cleans up.

mod binary;
mod boolean;
mod calendar;
mod decimal;
mod fixed;
mod list;
mod map;
mod offsets;
mod rows;
mod structs;
mod variant;

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType, Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, NullArray};

use crate::error::RowError;
use crate::row::{Span, Text};
use crate::schema::SparkType;
use crate::source::Source;

pub(crate) use rows::RowColumns;

use binary::BinaryColumn;
use boolean::BooleanColumn;
use calendar::CalendarColumn;
use decimal::{LongDecimalColumn, WideDecimalColumn};
use fixed::FixedColumn;
use list::ListColumn;
use map::MapColumn;
use structs::StructColumn;
use variant::VariantColumn;

/// What the columns of a batch share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The bytes of the batch's rows. Values don't overlap in rows that Spark makes, so no column
    /// has more bytes or elements than this; a malformed row that says so is refused before it
    /// takes memory. It also keeps offsets within 32 bits.
    pub(crate) budget: usize,
    /// Bytes of the values that a leaf column is working on.
    pub(crate) spans: Vec<Span>,
    /// The same, for strings and binaries.
    pub(crate) texts: Vec<Text>,
}

/// A column of any type. Each variant is dispatched on once per run of values.
#[derive(Debug)]
pub(crate) enum Column {
    Null(usize),
    Boolean(BooleanColumn),
    Int8(FixedColumn<Int8Type>),
    Int16(FixedColumn<Int16Type>),
    Int32(FixedColumn<Int32Type>),
    Int64(FixedColumn<Int64Type>),
    Float32(FixedColumn<Float32Type>),
    Float64(FixedColumn<Float64Type>),
    Date(FixedColumn<Date32Type>),
    Timestamp(FixedColumn<TimestampMicrosecondType>),
    Time(FixedColumn<Time64NanosecondType>),
    YearMonth(FixedColumn<IntervalYearMonthType>),
    DayTime(FixedColumn<DurationMicrosecondType>),
    LongDecimal(LongDecimalColumn),
    WideDecimal(WideDecimalColumn),
    Binary(BinaryColumn),
    Calendar(CalendarColumn),
    Variant(VariantColumn),
    Struct(StructColumn),
    List(ListColumn),
    Map(Box<MapColumn>),
}

/// Runs an expression on the column inside, whatever its type.
macro_rules! dispatch {
    ($column:expr, $inner:ident => $body:expr, $len:ident => $null:expr) => {
        match $column {
            Column::Null($len) => $null,
            Column::Boolean($inner) => $body,
            Column::Int8($inner) => $body,
            Column::Int16($inner) => $body,
            Column::Int32($inner) => $body,
            Column::Int64($inner) => $body,
            Column::Float32($inner) => $body,
            Column::Float64($inner) => $body,
            Column::Date($inner) => $body,
            Column::Timestamp($inner) => $body,
            Column::Time($inner) => $body,
            Column::YearMonth($inner) => $body,
            Column::DayTime($inner) => $body,
            Column::LongDecimal($inner) => $body,
            Column::WideDecimal($inner) => $body,
            Column::Binary($inner) => $body,
            Column::Calendar($inner) => $body,
            Column::Variant($inner) => $body,
            Column::Struct($inner) => $body,
            Column::List($inner) => $body,
            Column::Map($inner) => $body,
        }
    };
}

impl Column {
    /// An empty column for values of a type.
    pub(crate) fn new(data_type: &SparkType) -> Self {
        let arrow = data_type.arrow_type();
        match data_type {
            SparkType::Null => Self::Null(0),
            SparkType::Boolean => Self::Boolean(BooleanColumn::default()),
            SparkType::Byte => Self::Int8(FixedColumn::new(arrow)),
            SparkType::Short => Self::Int16(FixedColumn::new(arrow)),
            SparkType::Int => Self::Int32(FixedColumn::new(arrow)),
            SparkType::Long => Self::Int64(FixedColumn::new(arrow)),
            SparkType::Float => Self::Float32(FixedColumn::new(arrow)),
            SparkType::Double => Self::Float64(FixedColumn::new(arrow)),
            SparkType::Decimal {
                precision: ..=18, ..
            } => Self::LongDecimal(LongDecimalColumn::new(arrow)),
            SparkType::Decimal { .. } => Self::WideDecimal(WideDecimalColumn::new(arrow)),
            SparkType::String | SparkType::Binary => Self::Binary(BinaryColumn::default()),
            SparkType::Date => Self::Date(FixedColumn::new(arrow)),
            SparkType::Timestamp | SparkType::TimestampNtz => {
                Self::Timestamp(FixedColumn::new(arrow))
            }
            SparkType::Time => Self::Time(FixedColumn::new(arrow)),
            SparkType::YearMonthInterval => Self::YearMonth(FixedColumn::new(arrow)),
            SparkType::DayTimeInterval => Self::DayTime(FixedColumn::new(arrow)),
            SparkType::CalendarInterval => Self::Calendar(CalendarColumn::default()),
            SparkType::Variant => Self::Variant(VariantColumn::default()),
            SparkType::Struct(fields) => Self::Struct(StructColumn::new(fields)),
            SparkType::Array(element) => Self::List(ListColumn::new(element)),
            SparkType::Map(key, value) => Self::Map(Box::new(MapColumn::new(key, value))),
        }
    }

    /// Empties the column and makes room for `rows` values.
    pub(crate) fn begin(&mut self, rows: usize) {
        dispatch!(self, column => column.begin(rows), len => *len = 0);
    }

    /// Appends all values of a source.
    pub(crate) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        dispatch!(self, column => column.append(source, shared), len => {
            *len += source.len();
            Ok(())
        })
    }

    /// Hands the column over as an array, leaving an empty one.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        dispatch!(self, column => column.finish(), len => Ok(Arc::new(NullArray::new(*len))))
    }

    /// How many of the appended values are null.
    pub(crate) fn null_count(&self) -> usize {
        dispatch!(self, column => column.validity.null_count(), len => *len)
    }
}
