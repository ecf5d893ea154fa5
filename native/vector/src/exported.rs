use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type, to_ffi};
use arrow_array::{ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::VectorError;

/// An array and its type in the structures of Arrow's C data interface.
#[repr(C)]
pub struct ExportedArray {
    array: FFI_ArrowArray,
    schema: FFI_ArrowSchema,
}

/// Exports an array by reference and returns the address, which must be released. Its memory lives
/// until then, or until the array that was imported from it is dropped.
///
/// # Errors
///
/// If the interface has no such type.
pub fn export(data: &ArrayData) -> Result<i64, VectorError> {
    let (array, schema) = to_ffi(data)?;
    Ok(Box::into_raw(Box::new(ExportedArray { array, schema })) as i64)
}

/// Gives up what was exported, whether it was imported or not.
///
/// # Safety
///
/// `address` must come from [`export`] and not be released before.
pub unsafe fn release(address: i64) {
    // SAFETY: the caller vouches for an address that is given up here.
    drop(unsafe { Box::from_raw(address as *mut ExportedArray) });
}

/// Takes an exported array over, once, as one of `data_type`: names of nested fields may differ.
///
/// # Safety
///
/// `address` must be 0 or come from [`export`], not be released before, and be in nobody else's use.
pub(crate) unsafe fn import(address: i64, data_type: &DataType) -> Result<ArrayRef, VectorError> {
    let none = || VectorError::Descriptor("no exported array".to_owned());
    // SAFETY: the caller vouches for the address.
    let exported = unsafe { (address as *mut ExportedArray).as_mut() }.ok_or_else(none)?;
    let exported_type = DataType::try_from(&exported.schema)?;
    if !exported_type.equals_datatype(data_type) {
        let detail = format!("an exported array of {exported_type} for a column of {data_type}");
        return Err(VectorError::Descriptor(detail));
    }
    let array = std::mem::replace(&mut exported.array, FFI_ArrowArray::empty());
    if array.is_released() {
        return Err(none());
    }
    // SAFETY: `export` made the structure from a valid array, of a type that differs in names at most.
    let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) }?;
    Ok(make_array(data))
}
