//! Floats as Spark orders them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::{ArrowError, DataType};

/// Spark sees one NaN, greater than everything, and one zero; Arrow's order tells their bits
/// apart. The copy that this returns holds one of each, inside of nested values too.
pub(super) fn normalize_floats(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            Arc::new(array.unary::<_, Float32Type>(|value| {
                if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                }
            }))
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            Arc::new(array.unary::<_, Float64Type>(|value| {
                if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                }
            }))
        }
        _ => {
            let data = array.to_data();
            let children = data.child_data().iter().map(|child| {
                let child = normalize_floats(&make_array(child.clone()))?;
                Ok(child.to_data())
            });
            let children = children.collect::<Result<_, ArrowError>>()?;
            make_array(data.into_builder().child_data(children).build()?)
        }
    })
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_floats(field.data_type())
        }
        _ => false,
    }
}
