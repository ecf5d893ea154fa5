//! Spark's hash over the cells of Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Date32Type, Decimal128Type, DurationMicrosecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time64NanosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, BooleanArray, FixedSizeListArray, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::murmur::{hash_bytes, hash_double, hash_float, hash_int, hash_long, hash_wide_decimal};
use crate::{Result, ShuffleError};

/// The digits that a long holds.
const MAX_LONG_DIGITS: u8 = 18;

/// Cells whose hash can be chained. A null leaves the seed as it is.
pub(super) trait Cells {
    fn fold(&self, row: usize, seed: u32) -> u32;

    /// One dynamic call for a column instead of one for each row.
    fn fold_all(&self, hashes: &mut [u32]) {
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = self.fold(row, *hash);
        }
    }
}

type DynCells<'a> = Box<dyn Cells + 'a>;

/// Whether Spark's hash of values of this type is known here.
pub(super) fn check(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, _)
        | DataType::Time64(TimeUnit::Nanosecond)
        | DataType::Duration(TimeUnit::Microsecond)
        | DataType::Interval(IntervalUnit::YearMonth)
        | DataType::Decimal128(_, _)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::Utf8
        | DataType::LargeUtf8 => Ok(()),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => check(field.data_type()),
        other => Err(unsupported(other)),
    }
}

fn unsupported(data_type: &DataType) -> ShuffleError {
    ShuffleError::Unsupported(format!("hash of a key of type {data_type}"))
}

pub(super) fn cells(array: &dyn Array) -> Result<DynCells<'_>> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nulls),
        DataType::Boolean => Box::new(Booleans(array.as_boolean())),
        DataType::Int8 => fixed::<Int8Type>(array, |value, seed| hash_int(value.into(), seed)),
        DataType::Int16 => fixed::<Int16Type>(array, |value, seed| hash_int(value.into(), seed)),
        DataType::Int32 => fixed::<Int32Type>(array, hash_int),
        DataType::Date32 => fixed::<Date32Type>(array, hash_int),
        DataType::Interval(IntervalUnit::YearMonth) => {
            fixed::<IntervalYearMonthType>(array, hash_int)
        }
        DataType::Int64 => fixed::<Int64Type>(array, hash_long),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            fixed::<TimestampMicrosecondType>(array, hash_long)
        }
        DataType::Time64(TimeUnit::Nanosecond) => fixed::<Time64NanosecondType>(array, hash_long),
        DataType::Duration(TimeUnit::Microsecond) => {
            fixed::<DurationMicrosecondType>(array, hash_long)
        }
        DataType::Float32 => fixed::<Float32Type>(array, hash_float),
        DataType::Float64 => fixed::<Float64Type>(array, hash_double),
        DataType::Decimal128(precision, _) if *precision <= MAX_LONG_DIGITS => {
            fixed::<Decimal128Type>(array, |value, seed| match i64::try_from(value) {
                Ok(value) => hash_long(value, seed),
                // More digits than the type allows: Spark would have made it null before.
                Err(_) => hash_wide_decimal(value, seed),
            })
        }
        DataType::Decimal128(_, _) => fixed::<Decimal128Type>(array, hash_wide_decimal),
        DataType::Binary => Box::new(Bytes(array.as_binary::<i32>())),
        DataType::LargeBinary => Box::new(Bytes(array.as_binary::<i64>())),
        DataType::Utf8 => Box::new(Bytes(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Bytes(array.as_string::<i64>())),
        DataType::Struct(_) => {
            let array = array.as_struct();
            let fields = array.columns().iter().map(|column| cells(column));
            Box::new(Structs {
                fields: fields.collect::<Result<_>>()?,
                nulls: array.nulls(),
            })
        }
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            lists(array.value_offsets(), array.nulls(), &[array.values()])?
        }
        DataType::LargeList(_) => {
            let array = array.as_list::<i64>();
            lists(array.value_offsets(), array.nulls(), &[array.values()])?
        }
        DataType::FixedSizeList(_, _) => {
            let array = array.as_fixed_size_list();
            Box::new(FixedLists {
                values: cells(array.values())?,
                array,
            })
        }
        DataType::Map(_, _) => {
            let array = array.as_map();
            let parts: [&dyn Array; 2] = [array.keys(), array.values()];
            lists(array.value_offsets(), array.nulls(), &parts)?
        }
        other => return Err(unsupported(other)),
    })
}

fn is_null(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_some_and(|nulls| nulls.is_null(row))
}

struct Nulls;

impl Cells for Nulls {
    fn fold(&self, _row: usize, seed: u32) -> u32 {
        seed
    }
}

struct Booleans<'a>(&'a BooleanArray);

impl Cells for Booleans<'_> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        if is_null(self.0.nulls(), row) {
            return seed;
        }
        hash_int(self.0.value(row).into(), seed)
    }
}

struct Fixed<'a, T, F> {
    values: &'a [T],
    nulls: Option<&'a NullBuffer>,
    hash: F,
}

fn fixed<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    hash: impl Fn(T::Native, u32) -> u32 + 'a,
) -> DynCells<'a> {
    let array = array.as_primitive::<T>();
    Box::new(Fixed {
        values: array.values(),
        nulls: array.nulls(),
        hash,
    })
}

impl<T: Copy, F: Fn(T, u32) -> u32> Cells for Fixed<'_, T, F> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        match self.values.get(row) {
            Some(value) if !is_null(self.nulls, row) => (self.hash)(*value, seed),
            _ => seed,
        }
    }

    fn fold_all(&self, hashes: &mut [u32]) {
        if self.nulls.is_some() {
            for (row, hash) in hashes.iter_mut().enumerate() {
                *hash = self.fold(row, *hash);
            }
        } else {
            for (value, hash) in self.values.iter().zip(hashes) {
                *hash = (self.hash)(*value, *hash);
            }
        }
    }
}

struct Bytes<'a, T: ByteArrayType>(&'a GenericByteArray<T>);

impl<T: ByteArrayType> Cells for Bytes<'_, T> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        if is_null(self.0.nulls(), row) {
            return seed;
        }
        let value: &[u8] = self.0.value(row).as_ref();
        hash_bytes(value, seed)
    }
}

struct Structs<'a> {
    fields: Vec<DynCells<'a>>,
    nulls: Option<&'a NullBuffer>,
}

impl Cells for Structs<'_> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        if is_null(self.nulls, row) {
            return seed;
        }
        let fields = self.fields.iter();
        fields.fold(seed, |seed, field| field.fold(row, seed))
    }
}

/// Lists, and maps as lists whose elements have two parts.
struct Lists<'a, O> {
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    parts: Vec<DynCells<'a>>,
}

fn lists<'a, O: OffsetSizeTrait>(
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    parts: &[&'a dyn Array],
) -> Result<DynCells<'a>> {
    let parts = parts
        .iter()
        .map(|part| cells(*part))
        .collect::<Result<_>>()?;
    Ok(Box::new(Lists {
        offsets,
        nulls,
        parts,
    }))
}

impl<O: OffsetSizeTrait> Cells for Lists<'_, O> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        let (Some(start), Some(end)) = (self.offsets.get(row), self.offsets.get(row + 1)) else {
            return seed;
        };
        if is_null(self.nulls, row) {
            return seed;
        }
        (start.as_usize()..end.as_usize()).fold(seed, |seed, element| {
            let parts = self.parts.iter();
            parts.fold(seed, |seed, part| part.fold(element, seed))
        })
    }
}

struct FixedLists<'a> {
    array: &'a FixedSizeListArray,
    values: DynCells<'a>,
}

impl Cells for FixedLists<'_> {
    fn fold(&self, row: usize, seed: u32) -> u32 {
        if is_null(self.array.nulls(), row) {
            return seed;
        }
        let size = usize::try_from(self.array.value_length()).unwrap_or(0);
        let elements = row * size..(row + 1) * size;
        elements.fold(seed, |seed, element| self.values.fold(element, seed))
    }
}
