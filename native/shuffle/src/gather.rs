//! Sorted rows, column by column.

use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::metrics::nanos_since;
use crate::order::{RowOrder, Run};
use crate::runs::{Column, Segment};
use crate::{Result, ShuffleError};

/// Batches whose rows were brought into the order of their partitions.
#[derive(Debug)]
pub(crate) struct SortedGroup {
    pub(crate) batch: RecordBatch,
    pub(crate) runs: Vec<Run>,
}

impl SortedGroup {
    /// The rows of `batches` in the order that `order` has sorted them into.
    pub(crate) fn new(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        order: &RowOrder,
    ) -> Result<Self> {
        let rows = order.rows();
        let segments = rows.iter().map(|row| {
            Ok(Segment {
                source: index(row.batch)?,
                start: index(row.row)?,
                length: 1,
            })
        });
        let segments = segments.collect::<Result<Vec<_>>>()?;
        let columns = columns(schema, batches.iter());
        Ok(Self {
            batch: joined(schema, &columns, &segments, rows.len())?,
            runs: order.runs().to_vec(),
        })
    }

    /// The bytes of memory that it holds.
    pub(crate) fn memory_size(&self) -> usize {
        self.batch.get_array_memory_size() + self.runs.capacity() * size_of::<Run>()
    }
}

/// The arrays of each column.
fn columns<'a>(
    schema: &SchemaRef,
    batches: impl Iterator<Item = &'a RecordBatch> + Clone,
) -> Vec<Column<'a>> {
    let columns = (0..schema.fields().len()).map(|index| {
        let arrays = batches
            .clone()
            .filter_map(|batch| batch.columns().get(index));
        Column::new(arrays.map(AsRef::as_ref).collect())
    });
    columns.collect()
}

fn joined(
    schema: &SchemaRef,
    columns: &[Column<'_>],
    segments: &[Segment],
    rows: usize,
) -> Result<RecordBatch> {
    let columns = columns.iter().map(|column| column.join(segments, rows));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = SchemaRef::clone(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

fn index(number: u32) -> Result<usize> {
    usize::try_from(number).map_err(|_| ShuffleError::Internal("no such row"))
}

/// Rows of one partition.
pub(crate) struct Block {
    pub(crate) partition: usize,
    pub(crate) rows: RecordBatch,
    /// Whether they are the last ones of the partition.
    pub(crate) last: bool,
}

/// Gathers rows in chunks of up to `block_rows` rows. A chunk holds whole partitions where it can,
/// and blocks are slices of it, so that small partitions share the cost of gathering.
pub(crate) struct Gather<'a> {
    schema: SchemaRef,
    groups: &'a [SortedGroup],
    /// Where each group is: the next run, and its first row.
    places: Vec<(usize, usize)>,
    order: &'a RowOrder,
    /// The same for the rows that are in no group.
    order_place: (usize, usize),
    /// The arrays of each column: those of groups, then those of other batches.
    columns: Vec<Column<'a>>,
    block_rows: usize,
    /// The rows of the present partition that are not in a chunk yet.
    partition: usize,
    rest: Vec<Segment>,
    rest_rows: usize,
    chunk: Chunk,
    pub(crate) nanos: u64,
}

/// Rows that were gathered together.
struct Chunk {
    rows: RecordBatch,
    segments: Vec<Segment>,
    length: usize,
    /// The partitions in it: number, first row, last row's successor, whether it ends there.
    parts: std::vec::IntoIter<(usize, usize, usize, bool)>,
}

impl<'a> Gather<'a> {
    /// Gathers the rows of `groups`, and those of `batches` in the order of `order`.
    pub(crate) fn new(
        schema: SchemaRef,
        groups: &'a [SortedGroup],
        batches: &'a [RecordBatch],
        order: &'a RowOrder,
        block_rows: usize,
    ) -> Self {
        let all = groups.iter().map(|group| &group.batch).chain(batches);
        Self {
            columns: columns(&schema, all),
            places: vec![(0, 0); groups.len()],
            groups,
            order,
            order_place: (0, 0),
            block_rows: block_rows.max(1),
            partition: 0,
            rest: Vec::new(),
            rest_rows: 0,
            chunk: Chunk {
                rows: RecordBatch::new_empty(SchemaRef::clone(&schema)),
                segments: Vec::new(),
                length: 0,
                parts: Vec::new().into_iter(),
            },
            schema,
            nanos: 0,
        }
    }

    /// The next block, in the order of partitions.
    pub(crate) fn next(&mut self) -> Result<Option<Block>> {
        loop {
            if let Some((partition, start, end, last)) = self.chunk.parts.next() {
                let rows = if start == 0 && end == self.chunk.length {
                    self.chunk.rows.clone()
                } else {
                    self.chunk.rows.slice(start, end - start)
                };
                return Ok(Some(Block {
                    partition,
                    rows,
                    last,
                }));
            }
            let started = Instant::now();
            let more = self.fill_chunk()?;
            self.nanos = self.nanos.saturating_add(nanos_since(started));
            if !more {
                return Ok(None);
            }
        }
    }

    fn fill_chunk(&mut self) -> Result<bool> {
        self.chunk.segments.clear();
        self.chunk.length = 0;
        let mut parts = Vec::new();
        while self.chunk.length < self.block_rows {
            if self.rest_rows == 0 && !self.next_partition()? {
                break;
            }
            let room = self.block_rows - self.chunk.length;
            if self.rest_rows > room && self.chunk.length > 0 {
                break;
            }
            let start = self.chunk.length;
            self.move_to_chunk(self.rest_rows.min(room));
            parts.push((
                self.partition,
                start,
                self.chunk.length,
                self.rest_rows == 0,
            ));
        }
        if self.chunk.length == 0 {
            return Ok(false);
        }
        self.chunk.parts = parts.into_iter();
        self.chunk.rows = match self.chunk.segments.as_slice() {
            [one] => match self.groups.get(one.source) {
                Some(group) => group.batch.slice(one.start, one.length),
                None => self.joined_chunk()?,
            },
            _ => self.joined_chunk()?,
        };
        Ok(true)
    }

    fn joined_chunk(&self) -> Result<RecordBatch> {
        let chunk = &self.chunk;
        joined(&self.schema, &self.columns, &chunk.segments, chunk.length)
    }

    /// Moves the first `rows` rows of the rest into the chunk.
    fn move_to_chunk(&mut self, rows: usize) {
        let mut left = rows;
        let mut used = 0;
        for segment in &mut self.rest {
            let length = segment.length.min(left);
            if length == 0 {
                break;
            }
            push(&mut self.chunk.segments, Segment { length, ..*segment });
            left -= length;
            segment.start += length;
            segment.length -= length;
            used += usize::from(segment.length == 0);
        }
        self.rest.drain(..used);
        self.rest_rows -= rows;
        self.chunk.length += rows;
    }

    /// Finds the rows of the next partition that has any.
    fn next_partition(&mut self) -> Result<bool> {
        let heads = self.groups.iter().zip(&self.places);
        let heads = heads.filter_map(|(group, (run, _))| group.runs.get(*run));
        let others = self.order.runs().get(self.order_place.0);
        let Some(next) = heads.chain(others).map(|run| run.partition).min() else {
            return Ok(false);
        };
        self.partition = index(next)?;
        for (source, (group, place)) in self.groups.iter().zip(&mut self.places).enumerate() {
            if let Some((start, end)) = take_run(&group.runs, place, next)? {
                let length = end - start;
                self.rest_rows += length;
                self.rest.push(Segment {
                    source,
                    start,
                    length,
                });
            }
        }
        if let Some((start, end)) = take_run(self.order.runs(), &mut self.order_place, next)? {
            self.rest_rows += end - start;
            for row in self.order.rows().get(start..end).unwrap_or_default() {
                let segment = Segment {
                    source: self.groups.len() + index(row.batch)?,
                    start: index(row.row)?,
                    length: 1,
                };
                push(&mut self.rest, segment);
            }
        }
        Ok(true)
    }
}

/// The rows of the run at `place` if it is that of `partition`; moves on then.
fn take_run(
    runs: &[Run],
    place: &mut (usize, usize),
    partition: u32,
) -> Result<Option<(usize, usize)>> {
    match runs.get(place.0) {
        Some(run) if run.partition == partition => {
            let rows = (place.1, index(run.end)?);
            *place = (place.0 + 1, rows.1);
            Ok(Some(rows))
        }
        _ => Ok(None),
    }
}

/// Appends a segment, as part of the last one if it follows that.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut() {
        Some(last) if last.source == segment.source && last.end() == segment.start => {
            last.length += segment.length;
        }
        _ => segments.push(segment),
    }
}
