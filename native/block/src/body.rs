//! Rows to the body of a record batch message.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::ToByteSlice;

use crate::bits::BitAppender;
use crate::column::{Column, Layout, malformed, nulls};
use crate::{BlockError, RowRange, types};

/// As much as a buffer may need.
const PADDING: [u8; types::MAX_ALIGNMENT] = [0; types::MAX_ALIGNMENT];

/// Is told what a body holds while it is appended, in the order of the message's parts.
pub(crate) trait Notes {
    /// The next array has `length` values, of which `nulls` are null.
    fn array(&mut self, length: usize, nulls: usize);
    /// The next buffer begins at `offset` of the body and has `length` bytes.
    fn buffer(&mut self, offset: usize, length: usize);
    /// The offsets of the last array span `length` bytes or items.
    fn span(&mut self, length: usize);
}

/// Appends the body of `ranges` of `columns`, `rows` rows in all, to `out`. Returns its length.
pub(crate) fn append<N: Notes>(
    columns: &[Column],
    ranges: &[RowRange],
    rows: usize,
    alignment: usize,
    notes: &mut N,
    out: &mut Vec<u8>,
) -> Result<usize, BlockError> {
    let start = out.len();
    let mut body = Body {
        start,
        out,
        alignment,
        notes,
    };
    for column in columns {
        body.column(column, ranges, rows)?;
    }
    Ok(out.len() - start)
}

struct Body<'a, N> {
    out: &'a mut Vec<u8>,
    start: usize,
    alignment: usize,
    notes: &'a mut N,
}

impl<N: Notes> Body<'_, N> {
    /// Appends `ranges` of `column`, which are `length` values.
    fn column(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
        if column.layout == Layout::Null {
            self.notes.array(length, length);
            return Ok(());
        }
        self.validity(column, ranges, length)?;
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

    /// Appends the validity bitmap, which is empty without nulls.
    fn validity(
        &mut self,
        column: &Column,
        ranges: &[RowRange],
        length: usize,
    ) -> Result<(), BlockError> {
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
        self.notes.array(length, count);
        self.end(buffer);
        Ok(())
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
        self.notes.span(end.as_usize());
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
        self.notes.buffer(offset, length);
        let padding = length.next_multiple_of(self.alignment) - length;
        self.out
            .extend_from_slice(PADDING.get(..padding).unwrap_or_default());
    }
}
