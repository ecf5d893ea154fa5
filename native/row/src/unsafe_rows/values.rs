//! Arrow columns by the form of their values, borrowed.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::error::RowError;
use crate::schema::{SparkField, SparkType};

/// Decimals of up to this many digits are longs.
const MAX_LONG_DIGITS: u8 = 18;

/// A column, or a part of one.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) nulls: Nulls<'a>,
    pub(super) values: Values<'a>,
    /// Words that values of nested types take beside their slots, from the value `measured_from` on.
    pub(super) sizes: Vec<usize>,
    pub(super) measured_from: usize,
}

/// The values of a column.
#[derive(Debug)]
pub(super) enum Values<'a> {
    Null,
    Boolean(&'a BooleanBuffer),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    LongDecimal(&'a [i128]),
    WideDecimal(&'a [i128]),
    Bytes(Blobs<'a>),
    Calendar(&'a [i32], &'a [i32], &'a [i64]),
    Variant(Blobs<'a>, Blobs<'a>),
    Struct(Vec<Column<'a>>),
    List(Offsets<'a>, Box<Column<'a>>),
    Map(Offsets<'a>, Box<Column<'a>>, Box<Column<'a>>),
}

/// Which values of a column are null.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nulls<'a> {
    valid: Option<&'a [u8]>,
    offset: usize,
}

/// Where each value's part of something begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets<'a>(&'a [i32]);

/// Byte strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blobs<'a> {
    offsets: Offsets<'a>,
    pub(super) data: &'a [u8],
}

impl<'a> Column<'a> {
    /// Looks at all columns of a struct or of a batch.
    pub(super) fn all(
        fields: &[SparkField],
        columns: &'a [ArrayRef],
    ) -> Result<Vec<Self>, RowError> {
        if fields.len() != columns.len() {
            return Err(RowError::malformed(format!(
                "{} columns instead of {}",
                columns.len(),
                fields.len()
            )));
        }
        let pairs = fields.iter().zip(columns);
        pairs
            .map(|(field, column)| {
                Self::new(&field.data_type, column).map_err(|error| error.within(&field.name))
            })
            .collect()
    }

    fn new(data_type: &SparkType, array: &'a ArrayRef) -> Result<Self, RowError> {
        let values = Values::new(data_type, array)?.ok_or_else(|| {
            RowError::malformed(format!(
                "a column of {} where {} belong",
                array.data_type(),
                data_type.arrow_type()
            ))
        })?;
        Ok(Self {
            nulls: Nulls::new(array.nulls()),
            values,
            sizes: Vec::new(),
            measured_from: 0,
        })
    }
}

impl<'a> Values<'a> {
    /// The values in `array`, if that is what carries the type.
    fn new(data_type: &SparkType, array: &'a ArrayRef) -> Result<Option<Self>, RowError> {
        Ok(match data_type {
            SparkType::Null => Some(Self::Null),
            SparkType::Boolean => array
                .as_boolean_opt()
                .map(|array| Self::Boolean(array.values())),
            SparkType::Byte => numbers::<Int8Type>(array).map(Self::Int8),
            SparkType::Short => numbers::<Int16Type>(array).map(Self::Int16),
            SparkType::Int => numbers::<Int32Type>(array).map(Self::Int32),
            SparkType::Date => numbers::<Date32Type>(array).map(Self::Int32),
            SparkType::YearMonthInterval => {
                numbers::<IntervalYearMonthType>(array).map(Self::Int32)
            }
            SparkType::Long => numbers::<Int64Type>(array).map(Self::Int64),
            SparkType::Timestamp | SparkType::TimestampNtz => {
                numbers::<TimestampMicrosecondType>(array).map(Self::Int64)
            }
            SparkType::Time => numbers::<Time64NanosecondType>(array).map(Self::Int64),
            SparkType::DayTimeInterval => {
                numbers::<DurationMicrosecondType>(array).map(Self::Int64)
            }
            SparkType::Float => numbers::<Float32Type>(array).map(Self::Float32),
            SparkType::Double => numbers::<Float64Type>(array).map(Self::Float64),
            SparkType::Decimal { precision, .. } if *precision <= MAX_LONG_DIGITS => {
                numbers::<Decimal128Type>(array).map(Self::LongDecimal)
            }
            SparkType::Decimal { .. } => numbers::<Decimal128Type>(array).map(Self::WideDecimal),
            SparkType::String | SparkType::Binary => Blobs::new(array).map(Self::Bytes),
            SparkType::CalendarInterval => calendar(array),
            SparkType::Variant => variant(array),
            SparkType::Struct(fields) => match array.as_struct_opt() {
                Some(array) => Some(Self::Struct(Column::all(fields, array.columns())?)),
                None => None,
            },
            SparkType::Array(element) => match array.as_list_opt::<i32>() {
                Some(array) => Some(Self::List(
                    Offsets(array.value_offsets()),
                    Box::new(Column::new(element, array.values())?),
                )),
                None => None,
            },
            SparkType::Map(key, value) => match array.as_map_opt() {
                Some(array) => Some(Self::Map(
                    Offsets(array.value_offsets()),
                    Box::new(Column::new(key, array.keys())?),
                    Box::new(Column::new(value, array.values())?),
                )),
                None => None,
            },
        })
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<&[T::Native]> {
    array
        .as_primitive_opt::<T>()
        .map(|array| &array.values()[..])
}

fn calendar(array: &ArrayRef) -> Option<Values<'_>> {
    let [months, days, microseconds] = array.as_struct_opt()?.columns() else {
        return None;
    };
    Some(Values::Calendar(
        numbers::<Int32Type>(months)?,
        numbers::<Int32Type>(days)?,
        numbers::<Int64Type>(microseconds)?,
    ))
}

fn variant(array: &ArrayRef) -> Option<Values<'_>> {
    let [value, metadata] = array.as_struct_opt()?.columns() else {
        return None;
    };
    Some(Values::Variant(Blobs::new(value)?, Blobs::new(metadata)?))
}

impl<'a> Nulls<'a> {
    fn new(nulls: Option<&'a NullBuffer>) -> Self {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Self {
            valid: nulls.map(NullBuffer::validity),
            offset: nulls.map_or(0, NullBuffer::offset),
        }
    }

    /// Whether there is any.
    #[inline(always)]
    pub(super) fn any(self) -> bool {
        self.valid.is_some()
    }

    #[inline(always)]
    pub(super) fn is_null(self, value: usize) -> bool {
        self.valid.is_some_and(|valid| {
            let bit = self.offset + value;
            valid
                .get(bit / 8)
                .is_some_and(|byte| byte >> (bit % 8) & 1 == 0)
        })
    }
}

impl Offsets<'_> {
    /// Where a value's part begins and ends.
    #[inline(always)]
    pub(super) fn span(self, value: usize) -> (usize, usize) {
        match self.0.get(value..value + 2) {
            Some([start, end]) => (start.unsigned_abs() as usize, end.unsigned_abs() as usize),
            _ => (0, 0),
        }
    }

    /// Where the parts of some values begin and end together.
    pub(super) fn outer(self, first: usize, count: usize) -> (usize, usize) {
        let at = |value: usize| {
            let offset = self.0.get(value);
            offset.map_or(0, |offset| offset.unsigned_abs() as usize)
        };
        (at(first), at(first + count))
    }
}

impl<'a> Blobs<'a> {
    fn new(array: &'a ArrayRef) -> Option<Self> {
        array.as_binary_opt::<i32>().map(|array| Self {
            offsets: Offsets(array.value_offsets()),
            data: array.value_data(),
        })
    }

    /// Where a value begins and ends.
    #[inline(always)]
    pub(super) fn span(self, value: usize) -> (usize, usize) {
        self.offsets.span(value)
    }

    /// The bytes of a value.
    #[inline(always)]
    pub(super) fn get(self, value: usize) -> &'a [u8] {
        let (start, end) = self.span(value);
        self.data.get(start..end).unwrap_or_default()
    }

    /// Bytes of a value.
    #[inline(always)]
    pub(super) fn len(self, value: usize) -> usize {
        let (start, end) = self.span(value);
        end.saturating_sub(start)
    }
}
