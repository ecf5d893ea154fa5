//! Columns as blocks hold them.

use arrow_array::OffsetSizeTrait;
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::{BlockError, RowRange};

/// The arrays of one column, or of the items of one, of several batches.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) layout: Layout,
    pub(crate) arrays: Vec<ArrayData>,
    /// Whether any array has nulls.
    pub(crate) has_nulls: bool,
    /// The columns of a struct, the items of lists.
    pub(crate) children: Vec<Column>,
}

/// The buffers behind a validity bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// None, and no bitmap either.
    Null,
    /// A bit for each value.
    Bits,
    /// This many bytes for each value.
    Fixed(usize),
    /// Offsets of 4 bytes, and the bytes that they point at.
    Bytes,
    /// The same with offsets of 8 bytes.
    LargeBytes,
    /// Offsets of 4 bytes into the child.
    List,
    /// The same with offsets of 8 bytes.
    LargeList,
    /// None, and this many values of the child for each value.
    FixedList(usize),
    /// None, and one value of each child for each value.
    Struct,
}

impl Layout {
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bits,
            DataType::Binary | DataType::Utf8 => Self::Bytes,
            DataType::LargeBinary | DataType::LargeUtf8 => Self::LargeBytes,
            DataType::List(_) | DataType::Map(_, _) => Self::List,
            DataType::LargeList(_) => Self::LargeList,
            DataType::FixedSizeList(_, size) => Self::FixedList(usize::try_from(*size).ok()?),
            DataType::FixedSizeBinary(width) => Self::Fixed(usize::try_from(*width).ok()?),
            DataType::Struct(_) => Self::Struct,
            other => Self::Fixed(other.primitive_width()?),
        })
    }
}

impl Column {
    pub(crate) fn new(data_type: &DataType, arrays: Vec<ArrayData>) -> Result<Self, BlockError> {
        let unsupported = || BlockError::Unsupported(format!("type {data_type}"));
        let layout = Layout::of(data_type).ok_or_else(unsupported)?;
        let children = child_types(data_type)
            .into_iter()
            .enumerate()
            .map(|(index, data_type)| {
                let arrays = arrays.iter().map(|array| child(array, index, layout));
                Self::new(
                    data_type,
                    arrays.collect::<Option<_>>().ok_or_else(malformed)?,
                )
            });
        Ok(Self {
            children: children.collect::<Result<_, _>>()?,
            layout,
            has_nulls: arrays.iter().any(|array| nulls(array).is_some()),
            arrays,
        })
    }

    /// Puts another array in the place of the one at `index`.
    pub(crate) fn replace(&mut self, index: usize, array: ArrayData) -> Result<(), BlockError> {
        for (number, column) in self.children.iter_mut().enumerate() {
            let child = child(&array, number, self.layout).ok_or_else(malformed)?;
            column.replace(index, child)?;
        }
        *self.arrays.get_mut(index).ok_or_else(malformed)? = array;
        self.has_nulls = self.arrays.iter().any(|array| nulls(array).is_some());
        Ok(())
    }

    /// About how many bytes `range` takes.
    pub(crate) fn bytes(&self, range: RowRange) -> usize {
        let length = range.length;
        let values = match self.layout {
            Layout::Null => 0,
            Layout::Bits => length / 8 + 1,
            Layout::Fixed(width) => length.saturating_mul(width),
            Layout::Bytes => length * 4 + self.child_range::<i32>(range).length,
            Layout::LargeBytes => length * 8 + self.child_range::<i64>(range).length,
            Layout::List => length * 4 + self.child_bytes(self.child_range::<i32>(range)),
            Layout::LargeList => length * 8 + self.child_bytes(self.child_range::<i64>(range)),
            Layout::FixedList(size) => self.child_bytes(RowRange {
                batch: range.batch,
                start: range.start * size,
                length: length * size,
            }),
            Layout::Struct => self.child_bytes(range),
        };
        let validity = if self.has_nulls { length / 8 + 1 } else { 0 };
        values.saturating_add(validity)
    }

    fn child_bytes(&self, range: RowRange) -> usize {
        let children = self.children.iter();
        children.fold(0, |sum, child| sum.saturating_add(child.bytes(range)))
    }

    /// About how many bytes a value takes at most.
    pub(crate) fn widest(&self) -> usize {
        let children = || {
            let children = self.children.iter();
            children.fold(0_usize, |sum, child| sum.saturating_add(child.widest()))
        };
        let value = match self.layout {
            Layout::Null => 0,
            Layout::Bits => 1,
            Layout::Fixed(width) => width,
            Layout::Bytes => self.longest::<i32>(),
            Layout::LargeBytes => self.longest::<i64>(),
            Layout::List => self.longest::<i32>().saturating_mul(children()),
            Layout::LargeList => self.longest::<i64>().saturating_mul(children()),
            Layout::FixedList(size) => size.saturating_mul(children()),
            Layout::Struct => children(),
        };
        // An offset and a validity bit.
        value.saturating_add(9)
    }

    /// The largest difference of offsets.
    fn longest<O: OffsetSizeTrait>(&self) -> usize {
        let arrays = self.arrays.iter().filter(|array| !array.is_empty());
        let lengths = arrays.flat_map(|array| {
            let offsets = array.buffer::<O>(0).get(..=array.len()).unwrap_or_default();
            let lengths = offsets.windows(2).map(|pair| match pair {
                [start, end] => *end - *start,
                _ => O::default(),
            });
            lengths.max()
        });
        lengths.max().map_or(0, |length| length.as_usize())
    }

    /// What the offsets of `range` point at: nothing if there are none.
    pub(crate) fn child_range<O: OffsetSizeTrait>(&self, range: RowRange) -> RowRange {
        let nothing = RowRange {
            batch: range.batch,
            start: 0,
            length: 0,
        };
        match self.offsets::<O>(range) {
            Some([first, .., last]) => RowRange {
                batch: range.batch,
                start: first.as_usize(),
                length: (*last - *first).as_usize(),
            },
            _ => nothing,
        }
    }

    /// The offsets of `range`: one more than it has values, or none if it has no values.
    pub(crate) fn offsets<O: OffsetSizeTrait>(&self, range: RowRange) -> Option<&[O]> {
        // An array without values may have no offsets at all.
        if range.length == 0 {
            return Some(&[]);
        }
        let offsets = self.arrays.get(range.batch)?.buffer::<O>(0);
        offsets.get(range.start..=range.start + range.length)
    }
}

/// The types of the columns of a struct, of the items of a list.
pub(crate) fn child_types(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => vec![child.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// The validity of an array that has nulls.
pub(crate) fn nulls(array: &ArrayData) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}

/// A child of an array, from its first value on that belongs to the array.
fn child(array: &ArrayData, index: usize, layout: Layout) -> Option<ArrayData> {
    let child = array.child_data().get(index)?;
    let values = match layout {
        Layout::Struct => 1,
        Layout::FixedList(size) => size,
        _ => return Some(child.clone()),
    };
    if array.offset() == 0 {
        return Some(child.clone());
    }
    Some(child.slice(array.offset() * values, array.len() * values))
}

pub(crate) fn malformed() -> BlockError {
    BlockError::Schema("an array is shorter than it says".to_owned())
}
