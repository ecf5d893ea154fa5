//! The payload of small blocks without a codec: the body of a record batch without its message.
//!
//! A message says hundreds of bytes about its arrays, and all of it follows from the schema, the
//! number of rows and a few numbers:
//!
//! ```text
//!  numbers | zeros up to a multiple of 8 | body: the buffers of all columns
//! ```
//!
//! Writers put these numbers in front of the body; readers make the message again.

use arrow_buffer::Buffer;
use arrow_schema::{DataType, Schema};

use crate::body::{self, Notes};
use crate::column::{Column, Layout, child_types};
use crate::message::{self, Payload};
use crate::template::{MessageTemplate, Numbers};
use crate::{BlockError, BlockHeader, RowRange};

/// Of the body in its payload, and of buffers in the body. Padding is much of what few rows take,
/// so wide decimals get no more.
const ALIGNMENT: usize = 8;
/// The bits of a number in one byte; the eighth says that another byte follows.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

/// The numbers of a body, little-endian in groups of 7 bits (LEB128), in the order of the arrays:
/// the null count, and where there are offsets, what they span.
#[derive(Default)]
pub(crate) struct BodyNumbers {
    bytes: Vec<u8>,
}

impl BodyNumbers {
    pub(crate) fn memory_size(&self) -> usize {
        self.bytes.capacity()
    }

    fn push(&mut self, number: usize) {
        let mut rest = number;
        loop {
            let [low, ..] = rest.to_le_bytes();
            rest >>= BITS;
            if rest == 0 {
                self.bytes.push(low & !MORE);
                return;
            }
            self.bytes.push(low | MORE);
        }
    }
}

impl Notes for BodyNumbers {
    fn array(&mut self, _length: usize, nulls: usize) {
        self.push(nulls);
    }

    fn buffer(&mut self, _offset: usize, _length: usize) {}

    fn span(&mut self, length: usize) {
        self.push(length);
    }
}

/// Appends the payload of `ranges` of `columns`, `rows` rows in all, to `out`. `numbers` are those
/// of the last block and become those of this one.
pub(crate) fn append(
    columns: &[Column],
    ranges: &[RowRange],
    rows: usize,
    numbers: &mut BodyNumbers,
    out: &mut Vec<u8>,
) -> Result<(), BlockError> {
    // Mostly they take as many bytes as those of the last block: then nothing has to be moved.
    let start = out.len();
    let body = start + numbers.bytes.len();
    out.resize(body, 0);
    numbers.bytes.clear();
    body::append(columns, ranges, rows, ALIGNMENT, numbers, out)?;
    let padded = numbers.bytes.len().next_multiple_of(ALIGNMENT);
    numbers.bytes.resize(padded, 0);
    out.splice(start..body, numbers.bytes.iter().copied());
    Ok(())
}

/// Makes the messages of bodies again.
pub(crate) struct IpcBodyReader {
    arrays: Vec<Shape>,
    template: MessageTemplate,
    numbers: Numbers,
    /// That of the last block.
    message: Vec<u8>,
}

/// The buffers of an array and its children.
struct Shape {
    layout: Layout,
    children: Vec<Shape>,
}

impl IpcBodyReader {
    pub(crate) fn new(schema: &Schema) -> Result<Self, BlockError> {
        let arrays = schema
            .fields()
            .iter()
            .map(|field| Shape::of(field.data_type()));
        Ok(Self {
            arrays: arrays.collect::<Result<_, _>>()?,
            template: MessageTemplate::new(schema)?,
            numbers: Numbers::default(),
            message: Vec::new(),
        })
    }

    /// The parts of the payload `raw` of `rows` rows.
    pub(crate) fn payload(&mut self, raw: &Buffer, rows: u32) -> Result<Payload<'_>, BlockError> {
        let wrong = || BlockError::corrupt("the numbers of a body are not those of its schema");
        let rows = usize::try_from(rows).map_err(|_| wrong())?;
        self.numbers.clear();
        let mut walk = Walk {
            rest: raw,
            notes: &mut self.numbers,
            end: 0,
        };
        for shape in &self.arrays {
            walk.array(shape, rows).ok_or_else(wrong)?;
        }
        let (numbers, length) = (raw.len() - walk.rest.len(), walk.end);
        let body = numbers.next_multiple_of(ALIGNMENT);
        let padding = raw.get(numbers..body).ok_or_else(wrong)?;
        if padding.iter().any(|byte| *byte != 0) || body.checked_add(length) != Some(raw.len()) {
            return Err(wrong());
        }
        self.message.clear();
        self.message.extend_from_slice(self.template.message());
        let filled = self
            .template
            .fill(&mut self.message, rows, length, &self.numbers);
        filled.ok_or_else(wrong)?;
        Ok(Payload {
            batch: message::record_batch(message::header(&self.message)?)?,
            body: raw.slice_with_length(body, length),
        })
    }
}

impl Shape {
    fn of(data_type: &DataType) -> Result<Self, BlockError> {
        let unsupported = || BlockError::Unsupported(format!("type {data_type}"));
        let children = child_types(data_type).into_iter().map(Self::of);
        Ok(Self {
            layout: Layout::of(data_type).ok_or_else(unsupported)?,
            children: children.collect::<Result<_, _>>()?,
        })
    }
}

/// Goes through the arrays of a body, and notes what a message says of them.
struct Walk<'a> {
    /// The numbers to come, and what is behind them.
    rest: &'a [u8],
    notes: &'a mut Numbers,
    /// Where the body ends as far as is known.
    end: usize,
}

impl Walk<'_> {
    /// The next array, of `length` values. Returns nothing if there cannot be such an array.
    fn array(&mut self, shape: &Shape, length: usize) -> Option<()> {
        let nulls = self.number()?;
        self.notes.array(length, nulls);
        if shape.layout == Layout::Null {
            return Some(());
        }
        let bitmap = length.div_ceil(8);
        self.buffer(if nulls > 0 { bitmap } else { 0 })?;
        let children = match shape.layout {
            Layout::Null | Layout::Struct => length,
            Layout::Bits => {
                self.buffer(bitmap)?;
                0
            }
            Layout::Fixed(width) => {
                self.buffer(length.checked_mul(width)?)?;
                0
            }
            Layout::Bytes => self.values::<i32>(length)?,
            Layout::LargeBytes => self.values::<i64>(length)?,
            Layout::List => self.offsets::<i32>(length)?,
            Layout::LargeList => self.offsets::<i64>(length)?,
            Layout::FixedList(size) => length.checked_mul(size)?,
        };
        let mut shapes = shape.children.iter();
        shapes.try_for_each(|child| self.array(child, children))
    }

    /// Offsets of `length` values; returns what they span.
    fn offsets<O>(&mut self, length: usize) -> Option<usize> {
        self.buffer(length.checked_add(1)?.checked_mul(size_of::<O>())?)?;
        self.number()
    }

    /// Offsets, and the bytes that they span.
    fn values<O>(&mut self, length: usize) -> Option<usize> {
        let bytes = self.offsets::<O>(length)?;
        self.buffer(bytes)?;
        Some(bytes)
    }

    fn buffer(&mut self, length: usize) -> Option<()> {
        self.notes
            .buffer(if length == 0 { 0 } else { self.end }, length);
        let padded = length.checked_next_multiple_of(ALIGNMENT)?;
        self.end = self.end.checked_add(padded)?;
        Some(())
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & !MORE);
            number |= bits << shift;
            if number > BlockHeader::MAX_LENGTH {
                return None;
            }
            if byte & MORE == 0 {
                return usize::try_from(number).ok();
            }
            shift += BITS;
            if shift > BlockHeader::MAX_LENGTH.ilog2() {
                return None;
            }
        }
    }
}
