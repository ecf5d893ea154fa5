//! Rows to the body of a record batch message.

use std::ops::Range;

use arrow_array::OffsetSizeTrait;
use arrow_buffer::ToByteSlice;
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::BlockError;
use crate::bits::append_bits;
use crate::template::number;

/// What a message says about its body: kept between blocks for the memory.
#[derive(Default)]
pub(crate) struct BodyParts {
    /// A length and a null count for each array.
    pub(crate) nodes: Vec<u8>,
    /// An offset and a length for each buffer.
    pub(crate) buffers: Vec<u8>,
}

impl BodyParts {
    /// Appends the body of the rows `rows` of `columns` to `out`, and notes its parts. Returns the
    /// body's length.
    pub(crate) fn append(
        &mut self,
        columns: &[ArrayData],
        rows: &Range<usize>,
        alignment: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, BlockError> {
        self.nodes.clear();
        self.buffers.clear();
        let mut body = Body {
            start: out.len(),
            out,
            alignment,
            parts: self,
        };
        for column in columns {
            body.array(column, rows.start, rows.len())?;
        }
        Ok(body.out.len() - body.start)
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.capacity() + self.buffers.capacity()
    }
}

struct Body<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    alignment: usize,
    parts: &'a mut BodyParts,
}

impl Body<'_> {
    /// Appends `length` values of `data` from `start` on.
    fn array(&mut self, data: &ArrayData, start: usize, length: usize) -> Result<(), BlockError> {
        self.parts.nodes.extend_from_slice(&number(length));
        if *data.data_type() == DataType::Null {
            self.parts.nodes.extend_from_slice(&number(length));
            return Ok(());
        }
        let nulls = self.validity(data, start, length)?;
        self.parts.nodes.extend_from_slice(&number(nulls));
        let at = data.offset() + start;
        match data.data_type() {
            DataType::Boolean => {
                let values = data.buffers().first().ok_or_else(malformed)?;
                let buffer = self.begin();
                append_bits(values, at, length, self.out).ok_or_else(malformed)?;
                self.end(buffer);
            }
            DataType::Binary | DataType::Utf8 => self.bytes::<i32>(data, start, length)?,
            DataType::LargeBinary | DataType::LargeUtf8 => {
                self.bytes::<i64>(data, start, length)?
            }
            DataType::List(_) | DataType::Map(_, _) => self.list::<i32>(data, start, length)?,
            DataType::LargeList(_) => self.list::<i64>(data, start, length)?,
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).map_err(|_| malformed())?;
                self.array(child(data)?, at * size, length * size)?;
            }
            DataType::Struct(_) => {
                for child in data.child_data() {
                    self.array(child, at, length)?;
                }
            }
            DataType::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).map_err(|_| malformed())?;
                self.fixed(data, at * width, length * width)?;
            }
            other => {
                let width = other.primitive_width().ok_or_else(malformed)?;
                self.fixed(data, at * width, length * width)?;
            }
        }
        Ok(())
    }

    /// Appends the validity bitmap, which is empty without nulls, and returns their number.
    fn validity(
        &mut self,
        data: &ArrayData,
        start: usize,
        length: usize,
    ) -> Result<usize, BlockError> {
        let buffer = self.begin();
        let mut count = 0;
        if let Some(nulls) = data.nulls().filter(|nulls| nulls.null_count() > 0) {
            let at = nulls.offset() + start;
            let valid = append_bits(nulls.validity(), at, length, self.out);
            count = length - valid.ok_or_else(malformed)?;
            if count == 0 {
                self.out.truncate(buffer);
            }
        }
        self.end(buffer);
        Ok(count)
    }

    fn fixed(&mut self, data: &ArrayData, at: usize, length: usize) -> Result<(), BlockError> {
        let values = data.buffers().first().ok_or_else(malformed)?;
        self.values(values, at..at + length)
    }

    fn bytes<O: OffsetSizeTrait>(
        &mut self,
        data: &ArrayData,
        start: usize,
        length: usize,
    ) -> Result<(), BlockError> {
        let range = self.offsets::<O>(data, start, length)?;
        self.values(data.buffers().get(1).ok_or_else(malformed)?, range)
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        data: &ArrayData,
        start: usize,
        length: usize,
    ) -> Result<(), BlockError> {
        let range = self.offsets::<O>(data, start, length)?;
        self.array(child(data)?, range.start, range.len())
    }

    /// Appends the offsets such that they start at 0, and returns where they point.
    fn offsets<O: OffsetSizeTrait>(
        &mut self,
        data: &ArrayData,
        start: usize,
        length: usize,
    ) -> Result<Range<usize>, BlockError> {
        let buffer = self.begin();
        let mut range = 0..0;
        if length == 0 {
            // An array without values may have no offsets at all.
            self.out.extend_from_slice(O::usize_as(0).to_byte_slice());
        } else {
            let offsets = data.buffer::<O>(0).get(start..=start + length);
            let offsets = offsets.ok_or_else(malformed)?;
            let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
                return Err(malformed());
            };
            range = first.as_usize()..last.as_usize();
            self.out.resize(buffer + size_of_val(offsets), 0);
            let places = self.out.get_mut(buffer..).unwrap_or_default();
            let places = places.chunks_exact_mut(size_of::<O>());
            for (place, offset) in places.zip(offsets) {
                place.copy_from_slice((*offset - *first).to_byte_slice());
            }
        }
        self.end(buffer);
        Ok(range)
    }

    fn values(&mut self, values: &[u8], range: Range<usize>) -> Result<(), BlockError> {
        let values = values.get(range).ok_or_else(malformed)?;
        let buffer = self.begin();
        self.out.extend_from_slice(values);
        self.end(buffer);
        Ok(())
    }

    fn begin(&self) -> usize {
        self.out.len()
    }

    /// Notes the buffer that began at `start`, and pads it.
    fn end(&mut self, start: usize) {
        let length = self.out.len() - start;
        let offset = start - self.start;
        let buffers = &mut self.parts.buffers;
        buffers.extend_from_slice(&number(offset));
        buffers.extend_from_slice(&number(length));
        let padded = length.next_multiple_of(self.alignment);
        self.out.resize(start + padded, 0);
    }
}

fn child(data: &ArrayData) -> Result<&ArrayData, BlockError> {
    data.child_data().first().ok_or_else(malformed)
}

fn malformed() -> BlockError {
    BlockError::Schema("an array is shorter than it says".to_owned())
}
