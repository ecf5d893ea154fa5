//! Reading the numbers that describe a batch, and the memory that they name.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::VectorError;
use crate::heap::{self, JavaHeap};
use crate::memory;

/// Where values lie, as a number says it.
#[derive(Clone, Copy)]
enum Place<'a> {
    Address(*const u8),
    Heap {
        heap: &'a dyn JavaHeap,
        array: usize,
        offset: usize,
    },
}

/// Bytes of a vector that lie one behind the other.
pub(crate) struct Bytes<'a>(Place<'a>);

impl Bytes<'_> {
    /// Copies the bytes from `start` on, as many as `target` has.
    ///
    /// # Safety
    ///
    /// There must be as many.
    pub(crate) unsafe fn copy(&self, start: usize, target: &mut [u8]) -> Result<(), VectorError> {
        match self.0 {
            _ if target.is_empty() => Ok(()),
            Place::Address(from) => {
                // SAFETY: the caller vouches for the source; nobody else has the target.
                unsafe {
                    from.add(start)
                        .copy_to_nonoverlapping(target.as_mut_ptr(), target.len());
                };
                Ok(())
            }
            Place::Heap {
                heap,
                array,
                offset,
            } => heap
                .copy(array, offset + start, target)
                .map_err(VectorError::Heap),
        }
    }
}

/// A number of which every bit pattern is valid.
///
/// # Safety
///
/// It must be one.
pub(crate) unsafe trait Number: Copy + Default {}

// SAFETY: integers and floating point numbers have no invalid bit patterns.
unsafe impl Number for u8 {}
// SAFETY: as above.
unsafe impl Number for i8 {}
// SAFETY: as above.
unsafe impl Number for i16 {}
// SAFETY: as above.
unsafe impl Number for i32 {}
// SAFETY: as above.
unsafe impl Number for u32 {}
// SAFETY: as above.
unsafe impl Number for i64 {}
// SAFETY: as above.
unsafe impl Number for f32 {}
// SAFETY: as above.
unsafe impl Number for f64 {}

/// The numbers of a batch that are still to be read.
pub(crate) struct Numbers<'a> {
    rest: std::slice::IterMut<'a, i64>,
    heap: &'a dyn JavaHeap,
    /// The bytes that may still be copied.
    budget: usize,
}

impl<'a> Numbers<'a> {
    /// # Safety
    ///
    /// `address` must be that of as many initialised numbers as the first of them says, in nobody
    /// else's use for `'a`.
    pub(crate) unsafe fn at(address: i64, heap: &'a dyn JavaHeap) -> Result<Self, VectorError> {
        let start = address as *mut i64;
        if start.is_null() || !start.is_aligned() {
            return Err(VectorError::Descriptor(format!("no numbers at {address}")));
        }
        // SAFETY: the caller vouches for at least one number.
        let count = unsafe { *start };
        let count = usize::try_from(count)
            .map_err(|_| VectorError::Descriptor(format!("{count} numbers")))?;
        // SAFETY: the caller vouches for as many.
        let all = unsafe { std::slice::from_raw_parts_mut(start, count) };
        Ok(Self {
            rest: all.get_mut(1..).unwrap_or_default().iter_mut(),
            heap,
            budget: usize::MAX,
        })
    }

    /// Lets the batch have `bytes` at most.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.budget = bytes;
    }

    /// Counts bytes of the batch, before they are copied.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), VectorError> {
        let left = self.budget.checked_sub(bytes);
        self.budget = left.ok_or(VectorError::OverBudget)?;
        Ok(())
    }

    fn next_mut(&mut self) -> Result<&'a mut i64, VectorError> {
        let next = self.rest.next();
        next.ok_or_else(|| VectorError::Descriptor("it ends early".to_owned()))
    }

    pub(crate) fn next(&mut self) -> Result<i64, VectorError> {
        Ok(*self.next_mut()?)
    }

    pub(crate) fn next_count(&mut self) -> Result<usize, VectorError> {
        let count = self.next()?;
        usize::try_from(count).map_err(|_| VectorError::Descriptor(format!("a count of {count}")))
    }

    /// The bytes at the next place, or none if it is 0.
    pub(crate) fn next_bytes(&mut self) -> Result<Option<Bytes<'a>>, VectorError> {
        let place = match self.next()? {
            0 => return Ok(None),
            address @ 1.. => Place::Address(address as *const u8),
            reference => {
                let (array, offset) = heap::parse(reference);
                Place::Heap {
                    heap: self.heap,
                    array,
                    offset,
                }
            }
        };
        Ok(Some(Bytes(place)))
    }

    /// A copy of the `count` numbers at the next place, which need not be aligned.
    ///
    /// # Safety
    ///
    /// There must be as many.
    pub(crate) unsafe fn next_values<T: Number>(
        &mut self,
        count: usize,
    ) -> Result<Vec<T>, VectorError> {
        self.charge(count.saturating_mul(size_of::<T>()))?;
        let mut copied = vec![T::default(); count];
        match self.next_bytes()? {
            Some(bytes) => {
                // SAFETY: these are the bytes of `copied`, which may have any bits.
                let target = unsafe {
                    std::slice::from_raw_parts_mut(
                        copied.as_mut_ptr().cast::<u8>(),
                        size_of_val(copied.as_slice()),
                    )
                };
                // SAFETY: as the caller vouches.
                unsafe { bytes.copy(0, target) }?;
            }
            None if count == 0 => {}
            None => {
                return Err(VectorError::Descriptor(format!(
                    "no place of {count} values"
                )));
            }
        }
        Ok(copied)
    }

    /// The nulls from a byte for each row, if there are any.
    ///
    /// # Safety
    ///
    /// At the next place there must be as many bytes, if it isn't 0.
    pub(crate) unsafe fn next_nulls(
        &mut self,
        rows: usize,
    ) -> Result<Option<NullBuffer>, VectorError> {
        let Some(bytes) = self.next_bytes()? else {
            return Ok(None);
        };
        let collect =
            |bytes: &[u8]| -> BooleanBuffer { bytes.iter().map(|byte| *byte == 0).collect() };
        let valid = match bytes.0 {
            Place::Address(start) => {
                // SAFETY: the caller vouches for these bytes.
                collect(unsafe { std::slice::from_raw_parts(start, rows) })
            }
            Place::Heap { .. } => {
                let mut copied = vec![0; rows];
                // SAFETY: as the caller vouches.
                unsafe { bytes.copy(0, &mut copied) }?;
                collect(&copied)
            }
        };
        Ok(Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0))
    }

    /// Takes over the memory that the next three numbers say: address, bytes and capacity. They are
    /// 0 then.
    ///
    /// # Safety
    ///
    /// The address must be 0 or that of memory of [`crate::reallocate`] of that capacity, in nobody
    /// else's use, of which as many bytes are initialised.
    pub(crate) unsafe fn take_buffer(&mut self) -> Result<Option<Buffer>, VectorError> {
        let address = self.next_mut()?;
        let (bytes, capacity) = (self.next_count()?, self.next_count()?);
        // SAFETY: as the caller vouches; 0 keeps others from freeing it.
        Ok(unsafe { memory::take(std::mem::take(address), bytes, capacity) })
    }

    /// The memory that the next three numbers say, as it is: address, bytes and capacity.
    ///
    /// # Safety
    ///
    /// The address must be 0 or that of as many bytes, which stay as they are for longer than the
    /// buffer lives.
    pub(crate) unsafe fn borrow_buffer(&mut self) -> Result<Option<Buffer>, VectorError> {
        let (address, bytes) = (self.next()?, self.next_count()?);
        self.next_count()?;
        // SAFETY: as the caller vouches.
        Ok(unsafe { memory::borrow(address, bytes) })
    }

    pub(crate) fn end(&self) -> Result<(), VectorError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(VectorError::Descriptor(format!("{left} numbers are left"))),
        }
    }
}
