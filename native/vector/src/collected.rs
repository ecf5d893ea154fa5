//! Columns that the JVM collected value by value, already in Arrow's layout.

use std::sync::Arc;

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use crate::VectorError;
use crate::descriptor::Numbers;

/// What becomes of the memory in which a column was collected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collected {
    /// The arrays own it.
    Taken,
    /// It stays where it is, and the arrays must not outlive it.
    Borrowed,
}

impl Collected {
    /// # Safety
    ///
    /// As for [`Numbers::take_buffer`] or [`Numbers::borrow_buffer`].
    unsafe fn buffer(self, numbers: &mut Numbers<'_>) -> Result<Option<Buffer>, VectorError> {
        // SAFETY: as the caller vouches.
        unsafe {
            match self {
                Self::Taken => numbers.take_buffer(),
                Self::Borrowed => numbers.borrow_buffer(),
            }
        }
    }

    /// The array of `rows` rows that the next numbers say.
    ///
    /// # Safety
    ///
    /// The numbers must name such memory as [`Numbers::take_buffer`] or [`Numbers::borrow_buffer`]
    /// asks for.
    pub(crate) unsafe fn column(
        self,
        data_type: &DataType,
        rows: usize,
        numbers: &mut Numbers<'_>,
    ) -> Result<ArrayRef, VectorError> {
        // SAFETY: as the caller vouches.
        Ok(make_array(unsafe { self.data(data_type, rows, numbers) }?))
    }

    /// # Safety
    ///
    /// As for [`Self::column`].
    unsafe fn data(
        self,
        data_type: &DataType,
        rows: usize,
        numbers: &mut Numbers<'_>,
    ) -> Result<ArrayData, VectorError> {
        let array = ArrayData::builder(data_type.clone()).len(rows);
        if *data_type == DataType::Null {
            return Ok(array.build()?);
        }
        // SAFETY: as the caller vouches.
        let nulls = unsafe { self.buffer(numbers) }?;
        let mut buffers = Vec::new();
        for _ in 0..buffer_count(data_type) {
            // SAFETY: as the caller vouches.
            buffers.push(unsafe { self.buffer(numbers) }?.unwrap_or_default());
        }
        // SAFETY: as the caller vouches.
        let children = unsafe { self.children(data_type, rows, numbers) }?;
        let array = array.null_bit_buffer(nulls).buffers(buffers);
        Ok(array.child_data(children).build()?)
    }

    /// # Safety
    ///
    /// As for [`Self::column`].
    unsafe fn children(
        self,
        data_type: &DataType,
        rows: usize,
        numbers: &mut Numbers<'_>,
    ) -> Result<Vec<ArrayData>, VectorError> {
        let fields = |fields: &[Arc<Field>], rows, numbers: &mut Numbers<'_>| {
            let fields = fields.iter();
            // SAFETY: as the caller vouches.
            let columns =
                fields.map(|field| unsafe { self.data(field.data_type(), rows, numbers) });
            columns.collect::<Result<Vec<_>, _>>()
        };
        match data_type {
            DataType::Struct(children) => fields(children, rows, numbers),
            DataType::List(element) => {
                let count = numbers.next_count()?;
                fields(std::slice::from_ref(element), count, numbers)
            }
            DataType::Map(entries, _) => {
                let count = numbers.next_count()?;
                let DataType::Struct(children) = entries.data_type() else {
                    return Err(VectorError::kind(7, entries.data_type()));
                };
                let children = fields(children, count, numbers)?;
                let entries = ArrayData::builder(entries.data_type().clone()).len(count);
                Ok(vec![entries.child_data(children).build()?])
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The buffers of an array, besides that of nulls.
fn buffer_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(_) => 0,
        DataType::Binary => 2,
        _ => 1,
    }
}
