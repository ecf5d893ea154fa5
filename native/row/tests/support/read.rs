//! Reads model values back from Arrow arrays, and checks the arrays' form on the way.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalYearMonthType, Time64NanosecondType,
    TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch, StructArray};
use comet_row::{SparkField, SparkType};

use super::Value;

/// The rows of a batch.
pub fn rows(fields: &[SparkField], batch: &RecordBatch) -> Vec<Vec<Value>> {
    for column in batch.columns() {
        check(column);
        column.to_data().validate_full().unwrap();
    }
    let row = |at| {
        let columns = fields.iter().zip(batch.columns());
        columns
            .map(|(field, column)| value(&field.data_type, column, at))
            .collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// No slices, no useless bitmaps.
fn check(array: &dyn Array) {
    let data = array.to_data();
    assert_eq!(data.offset(), 0);
    if let Some(nulls) = data.nulls() {
        assert!(nulls.null_count() > 0, "a bitmap without nulls");
        assert_eq!(
            nulls.null_count(),
            nulls.len() - nulls.inner().count_set_bits()
        );
    }
    for child in data.child_data() {
        check(&arrow_array::make_array(child.clone()));
    }
}

fn value(ty: &SparkType, array: &dyn Array, at: usize) -> Value {
    assert_eq!(
        array.is_null(at),
        array.nulls().is_some_and(|nulls| nulls.is_null(at))
    );
    if *ty == SparkType::Null || array.is_null(at) {
        null_form(array, at);
        return Value::Null;
    }
    match ty {
        SparkType::Null => Value::Null,
        SparkType::Boolean => Value::Boolean(array.as_boolean().value(at)),
        SparkType::Byte => Value::Byte(array.as_primitive::<Int8Type>().value(at)),
        SparkType::Short => Value::Short(array.as_primitive::<Int16Type>().value(at)),
        SparkType::Int => Value::Int(array.as_primitive::<Int32Type>().value(at)),
        SparkType::Date => Value::Int(array.as_primitive::<Date32Type>().value(at)),
        SparkType::YearMonthInterval => {
            Value::Int(array.as_primitive::<IntervalYearMonthType>().value(at))
        }
        SparkType::Long => Value::Long(array.as_primitive::<Int64Type>().value(at)),
        SparkType::Timestamp | SparkType::TimestampNtz => {
            Value::Long(array.as_primitive::<TimestampMicrosecondType>().value(at))
        }
        SparkType::Time => Value::Long(array.as_primitive::<Time64NanosecondType>().value(at)),
        SparkType::DayTimeInterval => {
            Value::Long(array.as_primitive::<DurationMicrosecondType>().value(at))
        }
        SparkType::Float => Value::Float(array.as_primitive::<Float32Type>().value(at).to_bits()),
        SparkType::Double => Value::Double(array.as_primitive::<Float64Type>().value(at).to_bits()),
        SparkType::Decimal { .. } => {
            Value::Decimal(array.as_primitive::<Decimal128Type>().value(at))
        }
        SparkType::String | SparkType::Binary => {
            Value::Bytes(array.as_binary::<i32>().value(at).to_vec())
        }
        SparkType::CalendarInterval => {
            let parts = array.as_struct();
            Value::Calendar(
                parts.column(0).as_primitive::<Int32Type>().value(at),
                parts.column(1).as_primitive::<Int32Type>().value(at),
                parts.column(2).as_primitive::<Int64Type>().value(at),
            )
        }
        SparkType::Variant => {
            let part = |i| {
                array
                    .as_struct()
                    .column(i)
                    .as_binary::<i32>()
                    .value(at)
                    .to_vec()
            };
            Value::Variant(part(0), part(1))
        }
        SparkType::Struct(fields) => Value::Struct(members(fields, array.as_struct(), at)),
        SparkType::Array(element) => {
            let list = array.as_list::<i32>();
            Value::Array(elements(
                element,
                list.values(),
                range(list.value_offsets(), at),
            ))
        }
        SparkType::Map(key, item) => {
            let map = array.as_map();
            let range = range(map.value_offsets(), at);
            let keys = elements(key, map.keys(), range.clone());
            Value::Map(keys, elements(item, map.values(), range))
        }
    }
}

fn members(fields: &[SparkField], array: &StructArray, at: usize) -> Vec<Value> {
    let columns = fields.iter().zip(array.columns());
    columns
        .map(|(field, column)| value(&field.data_type, column, at))
        .collect()
}

fn elements(ty: &SparkType, array: &dyn Array, range: std::ops::Range<usize>) -> Vec<Value> {
    range.map(|at| value(ty, array, at)).collect()
}

fn range(offsets: &[i32], at: usize) -> std::ops::Range<usize> {
    offsets[at] as usize..offsets[at + 1] as usize
}

/// What lies under a null: null members, empty ranges.
fn null_form(array: &dyn Array, at: usize) {
    if let Some(parts) = array.as_struct_opt() {
        for member in parts.columns() {
            assert!(
                member
                    .logical_nulls()
                    .is_some_and(|nulls| nulls.is_null(at))
            );
            null_form(member, at);
        }
    } else if let Some(list) = array.as_list_opt::<i32>() {
        assert!(range(list.value_offsets(), at).is_empty());
    } else if let Some(map) = array.as_map_opt() {
        assert!(range(map.value_offsets(), at).is_empty());
    } else if let Some(binary) = array.as_binary_opt::<i32>() {
        assert!(range(binary.value_offsets(), at).is_empty());
    }
}
