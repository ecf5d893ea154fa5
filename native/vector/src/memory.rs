//! Memory in which the JVM collects values, and which arrays take over.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_buffer::Buffer;

/// That of the widest values of arrays.
const ALIGNMENT: usize = align_of::<i128>();

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGNMENT).ok()
}

/// Memory of [`reallocate`] with its only owner.
struct Owned {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: it is memory that nobody else has.
unsafe impl Send for Owned {}
// SAFETY: it is not written any more.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this capacity, and its owner gives it up.
        unsafe { free(self.start.as_ptr() as i64, self.capacity) };
    }
}

/// Makes memory larger or smaller, or new memory of address 0, and returns the address at which it
/// is now. Bytes that are in both are kept.
///
/// Returns 0 if there is no such memory; the old one stays as it is then.
///
/// # Safety
///
/// `address` must be 0 or come from this function, with `capacity` bytes, and be in nobody else's
/// use.
pub unsafe fn reallocate(address: i64, capacity: usize, wanted: usize) -> i64 {
    let (Some(old), Some(new)) = (layout(capacity), layout(wanted)) else {
        return 0;
    };
    if wanted == 0 {
        return 0;
    }
    // SAFETY: the size is not 0; the caller vouches for what there was.
    let start = unsafe {
        if address == 0 {
            alloc(new)
        } else {
            realloc(address as *mut u8, old, new.size())
        }
    };
    start as i64
}

/// Frees memory of [`reallocate`], if `address` is not 0.
///
/// # Safety
///
/// As for [`reallocate`].
pub unsafe fn free(address: i64, capacity: usize) {
    if let Some(layout) = layout(capacity)
        && address != 0
    {
        // SAFETY: the caller vouches for memory of this layout.
        unsafe { dealloc(address as *mut u8, layout) };
    }
}

/// A buffer that owns memory and lets go of what is not used.
///
/// # Safety
///
/// As for [`reallocate`]; the first `bytes` must be initialised.
pub(crate) unsafe fn take(address: i64, bytes: usize, capacity: usize) -> Option<Buffer> {
    let start = NonNull::new(address as *mut u8)?;
    let mut owned = Owned { start, capacity };
    let bytes = bytes.min(capacity);
    if bytes == 0 {
        return None;
    }
    // Below the alignment it would be moved.
    let fitting = bytes.max(ALIGNMENT).min(capacity);
    // SAFETY: it is the owner's.
    let start = unsafe { reallocate(address, capacity, fitting) };
    if let Some(start) = NonNull::new(start as *mut u8) {
        (owned.start, owned.capacity) = (start, fitting);
    }
    let start = owned.start;
    // SAFETY: the owner frees it with the buffer.
    Some(unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(owned)) })
}

/// A buffer of memory that belongs to somebody else.
///
/// # Safety
///
/// There must be as many bytes, which stay as they are for longer than the buffer lives.
pub(crate) unsafe fn borrow(address: i64, bytes: usize) -> Option<Buffer> {
    let start = NonNull::new(address as *mut u8)?;
    // SAFETY: as the caller vouches; nothing is freed with the buffer.
    Some(unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(())) })
}

#[cfg(test)]
mod tests {
    use super::{reallocate, take};

    #[test]
    fn taken_memory_has_what_was_written() {
        // SAFETY: memory of this function alone, written before it is read.
        unsafe {
            let mut address = reallocate(0, 0, 16);
            (address as *mut u64).write(7);
            address = reallocate(address, 16, 1 << 20);
            let buffer = take(address, 8, 1 << 20).unwrap();
            assert_eq!(buffer.as_slice(), 7_u64.to_ne_bytes());
            assert!(take(reallocate(0, 0, 8), 0, 8).is_none());
            assert_eq!(reallocate(0, 0, usize::MAX), 0);
        }
    }
}
