use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{ArrayRef, make_array};
use arrow_data::ArrayData;

use crate::VectorError;

/// An array and its type in the structures of Arrow's C data interface.
#[repr(C)]
pub struct ExportedArray {
    array: FFI_ArrowArray,
    schema: FFI_ArrowSchema,
}

/// Exports an array by reference and returns the address. Its memory lives until what was exported is
/// imported and dropped, or released.
///
/// # Errors
///
/// If the interface has no such type.
pub fn export(data: &ArrayData) -> Result<i64, VectorError> {
    let (array, schema) = to_ffi(data)?;
    Ok(Box::into_raw(Box::new(ExportedArray { array, schema })) as i64)
}

/// Gives up an array that nobody imported.
///
/// # Safety
///
/// `address` must come from [`export`] and be neither imported nor released before.
pub unsafe fn release(address: i64) {
    // SAFETY: the caller vouches for an address that is given up here.
    drop(unsafe { Box::from_raw(address as *mut ExportedArray) });
}

/// Takes an exported array over.
///
/// # Safety
///
/// As for [`release`].
pub(crate) unsafe fn import(address: i64) -> Result<ArrayRef, VectorError> {
    if address == 0 {
        return Err(VectorError::Descriptor("no exported array".to_owned()));
    }
    // SAFETY: the caller vouches for an address that is given up here.
    let exported = unsafe { Box::from_raw(address as *mut ExportedArray) };
    let ExportedArray { array, schema } = *exported;
    // SAFETY: both structures were made by `export` from a valid array.
    let data = unsafe { from_ffi(array, &schema) }?;
    Ok(make_array(data))
}
