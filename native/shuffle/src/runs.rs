//! Arrays joined from runs of rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, make_array};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_data::transform::{Capacities, MutableArrayData};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;

use crate::{Result, ShuffleError};

/// Rows that follow one another in a staged array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Which of the arrays.
    pub(crate) source: usize,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl Segment {
    pub(crate) fn end(self) -> usize {
        self.start + self.length
    }
}

/// Where runs are shorter than this on average, rows are gathered one by one.
const MIN_RUN: usize = 4;

const OUT_OF_RANGE: ShuffleError = ShuffleError::Internal("no such rows");

/// The arrays of a column.
pub(crate) struct Column<'a> {
    arrays: Vec<&'a dyn Array>,
    /// The same, where their buffers are needed whatever their type.
    data: Vec<ArrayData>,
    has_nulls: bool,
}

impl<'a> Column<'a> {
    pub(crate) fn new(arrays: Vec<&'a dyn Array>) -> Self {
        Self {
            data: arrays.iter().map(|array| array.to_data()).collect(),
            has_nulls: arrays.iter().any(|array| array.nulls().is_some()),
            arrays,
        }
    }

    /// Joins `segments` of the arrays, `rows` rows in all.
    pub(crate) fn join(&self, segments: &[Segment], rows: usize) -> Result<ArrayRef> {
        let first = self.arrays.first().ok_or(OUT_OF_RANGE)?;
        if rows < segments.len() * MIN_RUN {
            return self.join_rows(segments, rows);
        }
        match first.data_type() {
            DataType::Binary => self.join_binary(segments, rows),
            data_type => match data_type.primitive_width() {
                Some(width) => self.join_fixed(data_type, width, segments, rows),
                None => self.join_any(segments, rows),
            },
        }
    }

    fn join_rows(&self, segments: &[Segment], rows: usize) -> Result<ArrayRef> {
        let mut indices = Vec::with_capacity(rows);
        for segment in segments {
            indices.extend((segment.start..segment.end()).map(|row| (segment.source, row)));
        }
        Ok(interleave(&self.arrays, &indices)?)
    }

    fn join_fixed(
        &self,
        data_type: &DataType,
        width: usize,
        segments: &[Segment],
        rows: usize,
    ) -> Result<ArrayRef> {
        let mut joined = MutableBuffer::with_capacity(rows * width);
        for segment in segments {
            let data = self.data.get(segment.source).ok_or(OUT_OF_RANGE)?;
            let start = (data.offset() + segment.start) * width;
            let values = data.buffers().first().ok_or(OUT_OF_RANGE)?;
            let values = values.get(start..start + segment.length * width);
            joined.extend_from_slice(values.ok_or(OUT_OF_RANGE)?);
        }
        let data = ArrayDataBuilder::new(data_type.clone())
            .len(rows)
            .add_buffer(joined.into())
            .nulls(self.join_nulls(segments, rows)?)
            .build()?;
        Ok(make_array(data))
    }

    fn join_binary(&self, segments: &[Segment], rows: usize) -> Result<ArrayRef> {
        let mut total = 0;
        for segment in segments {
            total += self.binary(*segment)?.1.len();
        }
        if i32::try_from(total).is_err() {
            return Err(ShuffleError::Internal("a column of a block exceeds 2 GiB"));
        }
        let mut bytes = Vec::with_capacity(total);
        let mut offsets = Vec::with_capacity(rows + 1);
        let mut end = 0_i32;
        offsets.push(end);
        for segment in segments {
            let (places, values) = self.binary(*segment)?;
            bytes.extend_from_slice(values);
            if let [first, rest @ ..] = places {
                offsets.extend(rest.iter().map(|place| end + (place - first)));
                end = offsets.last().copied().unwrap_or(end);
            }
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = self.join_nulls(segments, rows)?;
        let joined = BinaryArray::try_new(offsets, Buffer::from_vec(bytes), nulls)?;
        Ok(Arc::new(joined))
    }

    /// The offsets and the bytes of a segment.
    fn binary(&self, segment: Segment) -> Result<(&[i32], &[u8])> {
        let array = self.arrays.get(segment.source).ok_or(OUT_OF_RANGE)?;
        let array = array.as_binary_opt::<i32>().ok_or(OUT_OF_RANGE)?;
        let places = array.value_offsets().get(segment.start..=segment.end());
        let places = places.ok_or(OUT_OF_RANGE)?;
        let first = places
            .first()
            .and_then(|place| usize::try_from(*place).ok());
        let last = places.last().and_then(|place| usize::try_from(*place).ok());
        let range = first.zip(last);
        let values = range.and_then(|(first, last)| array.value_data().get(first..last));
        Ok((places, values.ok_or(OUT_OF_RANGE)?))
    }

    fn join_nulls(&self, segments: &[Segment], rows: usize) -> Result<Option<NullBuffer>> {
        if !self.has_nulls {
            return Ok(None);
        }
        let mut joined = BooleanBufferBuilder::new(rows);
        for segment in segments {
            match self.arrays.get(segment.source).ok_or(OUT_OF_RANGE)?.nulls() {
                None => joined.append_n(segment.length, true),
                Some(nulls) => {
                    joined.append_buffer(&nulls.inner().slice(segment.start, segment.length));
                }
            }
        }
        let nulls = NullBuffer::new(joined.finish());
        Ok(Some(nulls).filter(|nulls| nulls.null_count() > 0))
    }

    /// Nested types, and others that come seldom.
    fn join_any(&self, segments: &[Segment], rows: usize) -> Result<ArrayRef> {
        let sources = self.data.iter().collect();
        let mut joined = MutableArrayData::with_capacities(sources, false, Capacities::Array(rows));
        for segment in segments {
            joined.try_extend(segment.source, segment.start, segment.end())?;
        }
        Ok(make_array(joined.freeze()))
    }
}
