//! Values of fixed width.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::VectorError;
use crate::descriptor::{Number, Numbers};

/// The most digits of a decimal that Spark's vectors hold in 4 and in 8 bytes (`Decimal` in Spark).
const MAX_INT_DIGITS: u8 = 9;
const MAX_LONG_DIGITS: u8 = 18;

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
/// At the places there must be nulls and values of `rows` rows.
pub(crate) unsafe fn values(
    data_type: &DataType,
    rows: usize,
    numbers: &mut Numbers<'_>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches: the widths are those of Spark's vectors.
    unsafe {
        let nulls = numbers.next_nulls(rows)?;
        Ok(match data_type {
            DataType::Boolean => booleans(numbers, rows, nulls)?,
            DataType::Int8 => primitive::<Int8Type>(numbers, rows, nulls)?,
            DataType::Int16 => primitive::<Int16Type>(numbers, rows, nulls)?,
            DataType::Int32 => primitive::<Int32Type>(numbers, rows, nulls)?,
            DataType::Int64 => primitive::<Int64Type>(numbers, rows, nulls)?,
            DataType::Float32 => primitive::<Float32Type>(numbers, rows, nulls)?,
            DataType::Float64 => primitive::<Float64Type>(numbers, rows, nulls)?,
            DataType::Date32 => primitive::<Date32Type>(numbers, rows, nulls)?,
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let values = typed::<TimestampMicrosecondType>(numbers, rows, nulls)?;
                Arc::new(values.with_timezone_opt(zone.clone()))
            }
            DataType::Time64(TimeUnit::Nanosecond) => {
                primitive::<Time64NanosecondType>(numbers, rows, nulls)?
            }
            DataType::Interval(IntervalUnit::YearMonth) => {
                primitive::<IntervalYearMonthType>(numbers, rows, nulls)?
            }
            DataType::Duration(TimeUnit::Microsecond) => {
                primitive::<DurationMicrosecondType>(numbers, rows, nulls)?
            }
            DataType::Decimal128(precision, scale) if *precision <= MAX_LONG_DIGITS => {
                let values = if *precision <= MAX_INT_DIGITS {
                    widened::<i32>(numbers, rows, nulls.as_ref())?
                } else {
                    widened::<i64>(numbers, rows, nulls.as_ref())?
                };
                decimals(values, nulls, *precision, *scale)?
            }
            other => return Err(VectorError::kind(1, other)),
        })
    }
}

/// # Safety
///
/// At the next place there must be `rows` values.
unsafe fn typed<T: ArrowPrimitiveType>(
    numbers: &mut Numbers<'_>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<PrimitiveArray<T>, VectorError>
where
    T::Native: Number,
{
    // SAFETY: as the caller vouches.
    let mut values = unsafe { numbers.next_values::<T::Native>(rows) }?;
    clear_nulls(&mut values, nulls.as_ref());
    Ok(PrimitiveArray::new(ScalarBuffer::from(values), nulls))
}

/// # Safety
///
/// As for [`typed`].
unsafe fn primitive<T: ArrowPrimitiveType>(
    numbers: &mut Numbers<'_>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, VectorError>
where
    T::Native: Number,
{
    // SAFETY: as the caller vouches.
    Ok(Arc::new(unsafe { typed::<T>(numbers, rows, nulls) }?))
}

/// # Safety
///
/// As for [`typed`].
unsafe fn booleans(
    numbers: &mut Numbers<'_>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, VectorError> {
    // SAFETY: as the caller vouches.
    let mut values = unsafe { numbers.next_values::<u8>(rows) }?;
    clear_nulls(&mut values, nulls.as_ref());
    let values: BooleanBuffer = values.into_iter().map(|byte| byte != 0).collect();
    Ok(Arc::new(BooleanArray::new(values, nulls)))
}

/// # Safety
///
/// As for [`typed`].
unsafe fn widened<T: Number + Into<i128>>(
    numbers: &mut Numbers<'_>,
    rows: usize,
    nulls: Option<&NullBuffer>,
) -> Result<Vec<i128>, VectorError> {
    // SAFETY: as the caller vouches.
    let mut values = unsafe { numbers.next_values::<T>(rows) }?;
    clear_nulls(&mut values, nulls);
    numbers.charge(rows.saturating_mul(size_of::<i128>()))?;
    Ok(values.into_iter().map(Into::into).collect())
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
