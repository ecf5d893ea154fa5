//! References to rows, and how to find rows in a page.

use crate::error::RowError;

/// The address and the length of an UnsafeRow.
///
/// It has no lifetime, since the memory belongs to the JVM. Holding one is harmless; reading through
/// it happens only in [`RowTransposer::transpose`], whose caller vouches for the memory.
///
/// [`RowTransposer::transpose`]: crate::RowTransposer::transpose
#[derive(Debug, Clone, Copy)]
pub struct UnsafeRowRef {
    pub(crate) address: *const u8,
    pub(crate) len: usize,
}

/// A run of bytes: a row, or a variable-length value in it. A null value has a null address.
pub(crate) type Span = UnsafeRowRef;

// SAFETY: the address is only ever read in functions whose callers vouch for the memory, on
// whatever thread they run; the reference itself is two numbers.
unsafe impl Send for UnsafeRowRef {}
// SAFETY: as for `Send`.
unsafe impl Sync for UnsafeRowRef {}

impl UnsafeRowRef {
    /// Refers to the `len` bytes at `address`, without looking at them. No alignment is needed.
    ///
    /// # Safety
    ///
    /// Until the last call of [`RowTransposer::transpose`] that gets this reference has returned,
    /// all `len` bytes from `address` must be readable, initialised, within one allocation, and
    /// written by nobody. The bytes themselves may be anything.
    ///
    /// [`RowTransposer::transpose`]: crate::RowTransposer::transpose
    pub unsafe fn from_raw(address: *const u8, len: usize) -> Self {
        Self { address, len }
    }

    /// The row's length in bytes.
    pub fn bytes(self) -> usize {
        self.len
    }

    /// Stands for a null value.
    pub(crate) const NULL: Self = Self {
        address: std::ptr::null(),
        len: 0,
    };

    /// Reads a number at a byte offset, at any alignment.
    ///
    /// # Safety
    ///
    /// The bytes `offset..offset + size_of::<T>()` must be in the span, the span be readable, and
    /// every bit pattern be a valid `T`.
    #[inline(always)]
    pub(crate) unsafe fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller vouches for bounds, memory and type.
        unsafe { self.address.add(offset).cast::<T>().read_unaligned() }
    }
}

/// A reference to a variable-length value, in the form that a column needs.
pub(crate) trait Located: Copy {
    /// The `len` bytes at `offset` of `parent`, if they are inside; otherwise it is never used.
    fn at(parent: Span, offset: usize, len: usize) -> Self;

    /// A null value in `parent`.
    fn null(parent: Span) -> Self;
}

impl Located for Span {
    #[inline(always)]
    fn at(parent: Span, offset: usize, len: usize) -> Self {
        Self {
            address: parent.address.wrapping_add(offset),
            len,
        }
    }

    #[inline(always)]
    fn null(_: Span) -> Self {
        Self::NULL
    }
}

/// A byte string that also knows how many bytes can be read, so that short ones are copied by a
/// load and a store of fixed size. A null one is empty, and as readable as any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    pub(crate) address: *const u8,
    pub(crate) len: usize,
    /// Readable bytes from the address, at least `len`.
    pub(crate) readable: usize,
}

// SAFETY: as for `UnsafeRowRef`.
unsafe impl Send for Text {}
// SAFETY: as for `UnsafeRowRef`.
unsafe impl Sync for Text {}

impl Located for Text {
    #[inline(always)]
    fn at(parent: Span, offset: usize, len: usize) -> Self {
        let address = parent.address.wrapping_add(offset);
        Self {
            address,
            len,
            readable: parent.len.wrapping_sub(offset),
        }
    }

    #[inline(always)]
    fn null(parent: Span) -> Self {
        Self {
            address: parent.address,
            len: 0,
            readable: parent.len,
        }
    }
}

impl From<Span> for Text {
    fn from(span: Span) -> Self {
        Self {
            address: span.address,
            len: span.len,
            readable: span.len,
        }
    }
}

/// Appends a reference to each row of a page to `rows`.
///
/// The first `used` bytes of a page are a run of rows, each a `u32` length in little-endian and as
/// many bytes, without padding in between:
///
/// ```text
/// +-----+-------+-----+-------+-----
/// | len | bytes | len | bytes | ...
/// +-----+-------+-----+-------+-----
/// ```
///
/// # Errors
///
/// [`RowError::Page`] if a length runs past `used`; `rows` is then as it was before.
///
/// # Safety
///
/// The `used` bytes from `page` must be readable, and stay as [`UnsafeRowRef::from_raw`] demands
/// for as long as the rows are in use.
pub unsafe fn rows_in_page(
    page: *const u8,
    used: usize,
    rows: &mut Vec<UnsafeRowRef>,
) -> Result<(), RowError> {
    const HEADER: usize = size_of::<u32>();
    let before = rows.len();
    let span = Span {
        address: page,
        len: used,
    };
    let mut at = 0;
    while at < used {
        let left = used - at;
        if left < HEADER {
            rows.truncate(before);
            let detail = format!("{left} bytes are left, too few for a row length");
            return Err(RowError::Page { offset: at, detail });
        }
        // SAFETY: HEADER bytes are left in the page, which the caller vouches for.
        let len = unsafe { span.read::<u32>(at) } as usize;
        if len > left - HEADER {
            rows.truncate(before);
            let left = left - HEADER;
            let detail = format!("a row of {len} bytes, but {left} are left");
            return Err(RowError::Page { offset: at, detail });
        }
        at += HEADER;
        // SAFETY: at + len <= used, and the caller vouches for these bytes.
        rows.push(unsafe { UnsafeRowRef::from_raw(page.add(at), len) });
        at += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(page: &[u8]) -> Result<Vec<Vec<u8>>, RowError> {
        let mut rows = Vec::new();
        // SAFETY: the page is a slice that outlives the rows.
        unsafe { rows_in_page(page.as_ptr(), page.len(), &mut rows) }?;
        // SAFETY: each row lies in the slice.
        let bytes =
            |row: &UnsafeRowRef| unsafe { std::slice::from_raw_parts(row.address, row.len) };
        Ok(rows.iter().map(|row| bytes(row).to_vec()).collect())
    }

    #[test]
    fn finds_rows_of_any_length() {
        let page = [2, 0, 0, 0, 7, 8, 0, 0, 0, 0, 1, 0, 0, 0, 9];
        assert_eq!(rows_of(&page).unwrap(), vec![vec![7, 8], vec![], vec![9]]);
        assert!(rows_of(&[]).unwrap().is_empty());
    }

    #[test]
    fn refuses_lengths_past_the_end() {
        let page = [1, 0, 0, 0, 7, 255, 255, 255, 255, 1];
        let error = rows_of(&page).unwrap_err().to_string();
        let expected = "malformed row page at byte 5: a row of 4294967295 bytes, but 1 are left";
        assert_eq!(error, expected);
        assert!(
            rows_of(&page[..7])
                .unwrap_err()
                .to_string()
                .contains("2 bytes are left")
        );

        let mut rows = vec![UnsafeRowRef::NULL];
        // SAFETY: the page outlives the call.
        unsafe { rows_in_page(page.as_ptr(), page.len(), &mut rows) }.unwrap_err();
        assert_eq!(rows.len(), 1);
    }
}
