//! Values of fixed width, and the bytes for nulls.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::VectorError;
use crate::descriptor::Numbers;

/// The most digits of a decimal that Spark's vectors hold in 4 and in 8 bytes (`Decimal` in Spark).
const MAX_INT_DIGITS: u8 = 9;
const MAX_LONG_DIGITS: u8 = 18;

/// Copies `count` numbers from `address`, which need not be aligned.
///
/// # Safety
///
/// There must be as many, of which every bit pattern is valid.
pub(crate) unsafe fn numbers_at<T: Copy + Default>(address: i64, count: usize) -> Vec<T> {
    let mut copied = vec![T::default(); count];
    if count > 0 {
        let from = address as *const u8;
        let bytes = count * size_of::<T>();
        // SAFETY: the caller vouches for the source; the target was just made.
        unsafe { from.copy_to_nonoverlapping(copied.as_mut_ptr().cast(), bytes) };
    }
    copied
}

/// # Safety
///
/// There must be a byte for each row at `address`, if it isn't 0.
pub(crate) unsafe fn nulls_at(address: i64, rows: usize) -> Option<NullBuffer> {
    if address == 0 || rows == 0 {
        return None;
    }
    // SAFETY: the caller vouches for these bytes.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, rows) };
    let valid: BooleanBuffer = bytes.iter().map(|byte| *byte == 0).collect();
    Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
}

/// Nothing of what a vector has in the place of a null goes on to others.
pub(crate) fn clear_nulls<T: Default>(values: &mut [T], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls else { return };
    for (value, valid) in values.iter_mut().zip(nulls.iter()) {
        if !valid {
            *value = T::default();
        }
    }
}

/// # Safety
///
/// At the addresses there must be nulls and values of `rows` rows.
pub(crate) unsafe fn values(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    let nulls = unsafe { nulls_at(numbers.next()?, rows) };
    let at = numbers.next()?;
    // SAFETY: as the caller vouches: the widths are those of Spark's vectors.
    unsafe {
        Ok(match data_type {
            DataType::Boolean => booleans(at, rows, nulls),
            DataType::Int8 => primitive::<Int8Type>(at, rows, nulls),
            DataType::Int16 => primitive::<Int16Type>(at, rows, nulls),
            DataType::Int32 => primitive::<Int32Type>(at, rows, nulls),
            DataType::Int64 => primitive::<Int64Type>(at, rows, nulls),
            DataType::Float32 => primitive::<Float32Type>(at, rows, nulls),
            DataType::Float64 => primitive::<Float64Type>(at, rows, nulls),
            DataType::Date32 => primitive::<Date32Type>(at, rows, nulls),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let values = typed::<TimestampMicrosecondType>(at, rows, nulls);
                Arc::new(values.with_timezone_opt(zone.clone()))
            }
            DataType::Time64(TimeUnit::Nanosecond) => {
                primitive::<Time64NanosecondType>(at, rows, nulls)
            }
            DataType::Interval(IntervalUnit::YearMonth) => {
                primitive::<IntervalYearMonthType>(at, rows, nulls)
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                primitive::<DurationMicrosecondType>(at, rows, nulls)
            }
            DataType::Decimal128(precision, scale) if *precision <= MAX_LONG_DIGITS => {
                let values = if *precision <= MAX_INT_DIGITS {
                    widened::<i32>(at, rows, nulls.as_ref())
                } else {
                    widened::<i64>(at, rows, nulls.as_ref())
                };
                decimals(values, nulls, *precision, *scale)?
            }
            other => return Err(VectorError::kind(1, other)),
        })
    }
}

/// # Safety
///
/// There must be `rows` values at `at`.
unsafe fn typed<T: ArrowPrimitiveType>(
    at: i64,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    // SAFETY: as the caller vouches; every bit pattern is a value.
    let mut values = unsafe { numbers_at::<T::Native>(at, rows) };
    clear_nulls(&mut values, nulls.as_ref());
    PrimitiveArray::new(ScalarBuffer::from(values), nulls)
}

/// # Safety
///
/// As for [`typed`].
unsafe fn primitive<T: ArrowPrimitiveType>(
    at: i64,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    // SAFETY: as the caller vouches.
    Arc::new(unsafe { typed::<T>(at, rows, nulls) })
}

/// # Safety
///
/// There must be `rows` bytes at `at`.
unsafe fn booleans(at: i64, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    // SAFETY: as the caller vouches.
    let mut values = unsafe { numbers_at::<u8>(at, rows) };
    clear_nulls(&mut values, nulls.as_ref());
    let values: BooleanBuffer = values.into_iter().map(|byte| byte != 0).collect();
    Arc::new(BooleanArray::new(values, nulls))
}

/// # Safety
///
/// There must be `rows` numbers at `at`.
unsafe fn widened<T: Copy + Default + Into<i128>>(
    at: i64,
    rows: usize,
    nulls: Option<&NullBuffer>,
) -> Vec<i128> {
    // SAFETY: as the caller vouches.
    let mut values = unsafe { numbers_at::<T>(at, rows) };
    clear_nulls(&mut values, nulls);
    values.into_iter().map(Into::into).collect()
}

pub(crate) fn decimals(
    values: Vec<i128>,
    nulls: Option<NullBuffer>,
    precision: u8,
    scale: i8,
) -> Result<ArrayRef, VectorError> {
    let decimals = Decimal128Array::new(ScalarBuffer::from(values), nulls);
    Ok(Arc::new(
        decimals.with_precision_and_scale(precision, scale)?,
    ))
}
