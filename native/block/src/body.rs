//! Rows to the body of a record batch message.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::ToByteSlice;

use crate::bits::BitAppender;
use crate::column::{Column, Layout, malformed, nulls};
use crate::template::number;
use crate::{BlockError, RowRange};

/// What a message says about its body: kept between blocks for the memory.
#[derive(Default)]
pub(crate) struct BodyParts {
    /// A length and a null count for each array.
    pub(crate) nodes: Vec<u8>,
    /// An offset and a length for each buffer.
    pub(crate) buffers: Vec<u8>,
}

impl BodyParts {
    /// Appends the body of `ranges` of `columns`, `rows` rows in all, to `out`, and notes its parts.
    /// Returns the body's length.
    pub(crate) fn append(
        &mut self,
        columns: &[Column],
        ranges: &[RowRange],
        rows: usize,
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
            body.column(column, ranges, rows)?;
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
    /// Appends `ranges` of `column`, which are `length` values.
    fn column(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
        self.parts.nodes.extend_from_slice(&number(length));
        if column.layout == Layout::Null {
            self.parts.nodes.extend_from_slice(&number(length));
            return Ok(());
        }
        let nulls = self.validity(column, ranges, length)?;
        self.parts.nodes.extend_from_slice(&number(nulls));
        match column.layout {
            Layout::Null => Ok(()),
            Layout::Bits => self.bits(column, ranges),
            Layout::Fixed(width) => self.fixed(column, ranges, width),
            Layout::Bytes => self.bytes::<i32>(column, ranges, length),
            Layout::LargeBytes => self.bytes::<i64>(column, ranges, length),
            Layout::List => self.list::<i32>(column, ranges, length),
            Layout::LargeList => self.list::<i64>(column, ranges, length),
            Layout::FixedList(size) => {
                let ranges = ranges.iter().map(|range| RowRange {
                    batch: range.batch,
                    start: range.start * size,
                    length: range.length * size,
                });
                self.children(column, &ranges.collect::<Vec<_>>(), length * size)
            }
            Layout::Struct => self.children(column, ranges, length),
        }
    }

    fn children(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
        let mut children = column.children.iter();
        children.try_for_each(|child| self.column(child, ranges, length))
    }

    /// Appends the validity bitmap, which is empty without nulls, and returns their number.
    fn validity(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<usize, BlockError> {
        let buffer = self.begin();
        let mut count = 0;
        if column.has_nulls {
            let mut bits = BitAppender::new(self.out);
            for range in ranges {
                let array = column.arrays.get(range.batch).ok_or_else(malformed)?;
                match nulls(array) {
                    None => bits.append_ones(range.length),
                    Some(nulls) => {
                        let start = nulls.offset() + range.start;
                        let appended = bits.append(nulls.validity(), start, range.length);
                        appended.ok_or_else(malformed)?;
                    }
                }
            }
            count = length - bits.finish();
            if count == 0 {
                self.out.truncate(buffer);
            }
        }
        self.end(buffer);
        Ok(count)
    }

    fn bits(&mut self, column: &Column, ranges: &[RowRange]) -> Result<(), BlockError> {
        let buffer = self.begin();
        let mut bits = BitAppender::new(self.out);
        for range in ranges {
            let array = column.arrays.get(range.batch).ok_or_else(malformed)?;
            let values = array.buffers().first().ok_or_else(malformed)?;
            let appended = bits.append(values, array.offset() + range.start, range.length);
            appended.ok_or_else(malformed)?;
        }
        bits.finish();
        self.end(buffer);
        Ok(())
    }

    fn fixed(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        width: usize,
    ) -> Result<(), BlockError> {
        let buffer = self.begin();
        for range in ranges {
            let array = column.arrays.get(range.batch).ok_or_else(malformed)?;
            let values = array.buffers().first().ok_or_else(malformed)?;
            let start = (array.offset() + range.start) * width;
            let values = values.get(start..start + range.length * width);
            self.out.extend_from_slice(values.ok_or_else(malformed)?);
        }
        self.end(buffer);
        Ok(())
    }

    fn bytes<O: OffsetSizeTrait>(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
        self.offsets::<O>(column, ranges, length)?;
        let buffer = self.begin();
        for range in ranges {
            let array = column.arrays.get(range.batch).ok_or_else(malformed)?;
            let values = array.buffers().get(1).ok_or_else(malformed)?;
            let bytes = column.child_range::<O>(*range);
            let values = values.get(bytes.start..bytes.start + bytes.length);
            self.out.extend_from_slice(values.ok_or_else(malformed)?);
        }
        self.end(buffer);
        Ok(())
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
        let items = self.offsets::<O>(column, ranges, length)?;
        let ranges = ranges.iter().map(|range| column.child_range::<O>(*range));
        self.children(column, &ranges.collect::<Vec<_>>(), items)
    }

    /// Appends the offsets such that they start at 0 and the ranges follow one another. Returns the
    /// last offset.
    fn offsets<O: OffsetSizeTrait>(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<usize, BlockError> {
        let buffer = self.begin();
        let mut end = O::default();
        self.out.resize(buffer + (length + 1) * size_of::<O>(), 0);
        let places = self.out.get_mut(buffer + size_of::<O>()..);
        let mut places = places.unwrap_or_default().chunks_exact_mut(size_of::<O>());
        for range in ranges {
            let offsets = column.offsets::<O>(*range).ok_or_else(malformed)?;
            let Some((first, rest)) = offsets.split_first() else {
                continue;
            };
            let start = end;
            let last = rest.last().unwrap_or(first);
            let sum = start.checked_add(&(*last - *first));
            let too_long = || BlockError::Limit("a column of more than 2 GiB".to_owned());
            end = sum.ok_or_else(too_long)?;
            for (offset, place) in rest.iter().zip(&mut places) {
                place.copy_from_slice((start + (*offset - *first)).to_byte_slice());
            }
        }
        self.end(buffer);
        Ok(end.as_usize())
    }

    fn begin(&self) -> usize {
        self.out.len()
    }

    /// Notes the buffer that began at `start`, and pads it.
    fn end(&mut self, start: usize) {
        let length = self.out.len() - start;
        // Where an empty buffer lies is of no meaning, and zeros compress best.
        let offset = if length == 0 { 0 } else { start - self.start };
        let buffers = &mut self.parts.buffers;
        buffers.extend_from_slice(&number(offset));
        buffers.extend_from_slice(&number(length));
        let padded = length.next_multiple_of(self.alignment);
        self.out.resize(start + padded, 0);
    }
}
