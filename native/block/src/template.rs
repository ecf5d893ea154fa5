//! The record batch message of all blocks of a schema.
//!
//! Messages of one schema differ in a few numbers of fixed width and place. So one is made with
//! Arrow's own writer, and every block gets a copy with its own numbers.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_ipc::{Message, RecordBatch as BatchMessage};
use arrow_schema::{Field, Schema};

use crate::BlockError;
use crate::body::Notes;
use crate::encoder::ipc_stream;
use crate::message::{self, PREFIX};

const NUMBER: usize = 8;

/// A message and where its numbers are.
pub(crate) struct MessageTemplate {
    message: Vec<u8>,
    rows: Range<usize>,
    /// Absent if no batch of the schema has any buffer.
    body_length: Option<Range<usize>>,
    /// A length and a null count for each array.
    nodes: Range<usize>,
    /// An offset and a length for each buffer.
    buffers: Range<usize>,
}

/// What one message says about its arrays: kept between blocks for the memory.
#[derive(Default)]
pub(crate) struct Numbers {
    nodes: Vec<u8>,
    buffers: Vec<u8>,
}

impl Numbers {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.buffers.clear();
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.nodes.capacity() + self.buffers.capacity()
    }
}

impl Notes for Numbers {
    fn array(&mut self, length: usize, nulls: usize) {
        self.nodes.extend_from_slice(&number(length));
        self.nodes.extend_from_slice(&number(nulls));
    }

    fn buffer(&mut self, offset: usize, length: usize) {
        self.buffers.extend_from_slice(&number(offset));
        self.buffers.extend_from_slice(&number(length));
    }

    fn span(&mut self, _length: usize) {}
}

impl MessageTemplate {
    pub(crate) fn new(schema: &Schema) -> Result<Self, BlockError> {
        let batch = row_of_nulls(schema)?;
        let mut stream = ipc_stream(batch.schema_ref())?;
        let start = stream.get_ref().len();
        stream.write(&batch)?;
        let written = stream.get_ref().get(start..).unwrap_or_default();
        let (message, _) = message::split_message(written, "record batch")?;
        let header = message::header(message)?;
        let batch = message::record_batch(header)?;
        let missing = || BlockError::Schema("encoder left out a part of its message".to_owned());
        let table = &header._tab;
        let body_length = table.vtable().get(Message::VT_BODYLENGTH);
        let body_length = number_at(table.loc(), body_length);
        let table = &batch._tab;
        let rows = number_at(table.loc(), table.vtable().get(BatchMessage::VT_LENGTH));
        let nodes = batch.nodes().ok_or_else(missing)?;
        let buffers = batch.buffers().ok_or_else(missing)?;
        Ok(Self {
            rows: rows.ok_or_else(missing)?,
            body_length,
            nodes: place_of(nodes.bytes(), message),
            buffers: place_of(buffers.bytes(), message),
            message: message.to_vec(),
        })
    }

    /// The message with the numbers of some other batch.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Puts into a copy of the message what a batch of `rows` rows with a body of `body_length`
    /// bytes has. Returns nothing if `numbers` are not those of a batch of the schema.
    #[must_use]
    pub(crate) fn fill(
        &self,
        message: &mut [u8],
        rows: usize,
        body_length: usize,
        numbers: &Numbers,
    ) -> Option<()> {
        let mut put = |at: &Range<usize>, bytes: &[u8]| {
            let place = message.get_mut(at.clone());
            let place = place.filter(|place| place.len() == bytes.len())?;
            place.copy_from_slice(bytes);
            Some(())
        };
        put(&self.rows, &number(rows))?;
        if let Some(at) = &self.body_length {
            put(at, &number(body_length))?;
        }
        put(&self.nodes, &numbers.nodes)?;
        put(&self.buffers, &numbers.buffers)
    }
}

/// A number as messages hold it.
fn number(value: usize) -> [u8; NUMBER] {
    u64::try_from(value).unwrap_or(u64::MAX).to_le_bytes()
}

/// The smallest batch in whose message no number is left out for being 0.
fn row_of_nulls(schema: &Schema) -> Result<RecordBatch, BlockError> {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::clone(field).with_nullable(true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let columns = schema.fields().iter();
    let columns = columns.map(|field| new_null_array(field.data_type(), 1));
    let columns = columns.collect::<Vec<ArrayRef>>();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
    Ok(batch)
}

/// Where in a message a number of the table at `table` is, if the table has it.
fn number_at(table: usize, field: u16) -> Option<Range<usize>> {
    let start = PREFIX + table + usize::from(field);
    (field > 0).then_some(start..start + NUMBER)
}

fn place_of(part: &[u8], message: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - message.as_ptr().addr();
    start..start + part.len()
}
