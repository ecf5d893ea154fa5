//! Native objects that the JVM owns by number.

use crate::error::BridgeError;

/// Gives `value` to the JVM, which must pass it to [`close`] exactly once.
pub(crate) fn open<T>(value: T) -> i64 {
    Box::into_raw(Box::new(value)) as i64
}

/// The object behind a handle.
///
/// # Safety
///
/// `handle` must be 0 or come from [`open`] with the same `T`, must not have been closed, and
/// nobody else may use it at the same time.
pub(crate) unsafe fn borrow<'a, T>(handle: i64) -> Result<&'a mut T, BridgeError> {
    // SAFETY: the caller vouches for a live handle that nobody else uses.
    unsafe { (handle as *mut T).as_mut() }
        .ok_or_else(|| BridgeError::Argument(format!("{} is closed", std::any::type_name::<T>())))
}

/// The object behind a handle that several threads use at a time.
///
/// # Safety
///
/// As for [`borrow`], but others may share it.
pub(crate) unsafe fn share<'a, T: Sync>(handle: i64) -> Result<&'a T, BridgeError> {
    // SAFETY: the caller vouches for a live handle that nobody borrows for itself.
    unsafe { (handle as *const T).as_ref() }
        .ok_or_else(|| BridgeError::Argument(format!("{} is closed", std::any::type_name::<T>())))
}

/// Drops the object behind a handle.
///
/// # Safety
///
/// As for [`borrow`]; the handle must not be used afterwards.
pub(crate) unsafe fn close<T>(handle: i64) {
    if handle != 0 {
        // SAFETY: the pointer came from `Box::into_raw` and is given up here.
        drop(unsafe { Box::from_raw(handle as *mut T) });
    }
}
