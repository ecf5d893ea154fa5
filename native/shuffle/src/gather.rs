//! Staged rows in the order of their partitions, on their way into blocks.

use std::ops::Range;
use std::time::Instant;

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave;
use comet_block::{BlockRows, RowRange};

use crate::metrics::nanos_since;
use crate::order::{RowOrder, RowRef, Run};
use crate::sizes::shorten;
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
        let mut indices = Vec::new();
        Ok(Self {
            batch: interleaved(
                schema,
                &columns(schema, batches),
                order.rows(),
                &mut indices,
            )?,
            runs: order.runs().to_vec(),
        })
    }

    /// The bytes of memory that it holds.
    pub(crate) fn memory_size(&self) -> usize {
        self.batch.get_array_memory_size() + self.runs.capacity() * size_of::<Run>()
    }
}

/// What gathering takes for each row beside its values.
pub(crate) const INDEX_BYTES: usize = size_of::<(usize, usize)>();

/// The arrays of each column.
fn columns<'a>(schema: &SchemaRef, batches: &'a [RecordBatch]) -> Vec<Vec<&'a dyn Array>> {
    let columns = (0..schema.fields().len()).map(|index| {
        let arrays = batches.iter();
        let arrays = arrays.filter_map(|batch| batch.columns().get(index));
        arrays.map(AsRef::as_ref).collect()
    });
    columns.collect()
}

fn interleaved(
    schema: &SchemaRef,
    columns: &[Vec<&dyn Array>],
    rows: &[RowRef],
    indices: &mut Vec<(usize, usize)>,
) -> Result<RecordBatch> {
    indices.clear();
    indices.reserve(rows.len());
    for row in rows {
        indices.push((index(row.batch)?, index(row.row)?));
    }
    let columns = columns.iter().map(|arrays| interleave(arrays, indices));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let schema = SchemaRef::clone(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

fn index(number: u32) -> Result<usize> {
    usize::try_from(number).map_err(|_| NO_ROW)
}

const NO_ROW: ShuffleError = ShuffleError::Internal("no such row");

/// Rows of one partition.
pub(crate) struct Block<'a> {
    pub(crate) partition: usize,
    pub(crate) rows: &'a BlockRows,
    pub(crate) ranges: &'a [RowRange],
    /// Whether they are the last ones of the partition.
    pub(crate) last: bool,
}

/// So many rows are worth being gathered together.
const MIN_CHUNK_ROWS: usize = 512;

/// The length of the longest run.
fn longest(runs: &[Run]) -> usize {
    let ends = runs.iter().map(|run| index(run.end).unwrap_or(usize::MAX));
    let starts = std::iter::once(0).chain(ends.clone());
    let lengths = starts.zip(ends).map(|(start, end)| end - start);
    lengths.max().unwrap_or(0)
}

/// Walks through the partitions. Runs of sorted groups go into blocks from where they are. Rows that
/// are in no group are gathered before, in chunks that small partitions share.
pub(crate) struct Gather<'a> {
    schema: SchemaRef,
    groups: &'a [SortedGroup],
    /// Where each group is: the next run, and its first row.
    places: Vec<(usize, usize)>,
    order: &'a RowOrder,
    /// The same for the rows that are in no group.
    order_place: (usize, usize),
    columns: Vec<Vec<&'a dyn Array>>,
    unsorted: BlockRows,
    indices: Vec<(usize, usize)>,
    /// The groups, and after them the chunk.
    rows: BlockRows,
    /// The part of the order that is in the chunk.
    chunk: Range<usize>,
    block_rows: usize,
    /// A row that has more bytes is a block of its own.
    block_bytes: usize,
    partition: usize,
    /// The rows of the partition that are in no block yet. What follows the groups is a part of the
    /// order here.
    rest: Vec<RowRange>,
    block: Vec<RowRange>,
    /// Whether blocks may get so large that their bytes have to be looked at.
    wide: bool,
    /// So many rows of a chunk are no more than a block may have.
    chunk_rows: usize,
    pub(crate) nanos: u64,
}

impl<'a> Gather<'a> {
    /// Gathers the rows of `groups`, and those of `batches` in the order of `order`, for blocks of so
    /// many rows and bytes at most.
    pub(crate) fn new(
        schema: &SchemaRef,
        groups: &'a [SortedGroup],
        batches: &'a [RecordBatch],
        order: &'a RowOrder,
        (block_rows, block_bytes): (usize, usize),
    ) -> Result<Self> {
        let block_rows = block_rows.max(1);
        let mut sources: Vec<_> = groups.iter().map(|group| group.batch.clone()).collect();
        sources.push(RecordBatch::new_empty(SchemaRef::clone(schema)));
        let rows = BlockRows::new(schema, &sources)?;
        let unsorted = BlockRows::new(schema, batches)?;
        let unsorted_row = unsorted.widest_row().max(1);
        let widest = rows.widest_row().max(unsorted_row);
        let runs = groups.iter().map(|group| longest(&group.runs));
        let most = runs.fold(longest(order.runs()), usize::saturating_add);
        Ok(Self {
            wide: widest.saturating_mul(block_rows.min(most)) > block_bytes,
            chunk_rows: block_bytes / unsorted_row,
            schema: SchemaRef::clone(schema),
            groups,
            places: vec![(0, 0); groups.len()],
            order,
            order_place: (0, 0),
            columns: columns(schema, batches),
            unsorted,
            indices: Vec::new(),
            rows,
            chunk: 0..0,
            block_rows,
            block_bytes,
            partition: 0,
            rest: Vec::new(),
            block: Vec::new(),
            nanos: 0,
        })
    }

    /// The next block, in the order of partitions.
    pub(crate) fn next(&mut self) -> Result<Option<Block<'_>>> {
        if self.rest.is_empty() && !self.next_partition()? {
            return Ok(None);
        }
        self.fill_block()?;
        Ok(Some(Block {
            partition: self.partition,
            rows: &self.rows,
            ranges: &self.block,
            last: self.rest.is_empty(),
        }))
    }

    /// Moves as much of the rest into the block as one may hold.
    fn fill_block(&mut self) -> Result<()> {
        self.block.clear();
        let (mut rows, mut bytes) = (self.block_rows, self.block_bytes);
        let mut used = 0;
        while let Some(range) = self.rest.get(used).copied() {
            let Some(mut part) = self.at_hand(range)? else {
                break;
            };
            let available = part.length;
            part.length = available.min(rows);
            if self.wide {
                let least = usize::from(self.block.is_empty());
                shorten(&mut part, &self.rows, bytes, least);
                bytes = bytes.saturating_sub(self.rows.bytes(part));
            }
            if part.length == 0 {
                break;
            }
            self.block.push(part);
            rows -= part.length;
            if part.length < range.length {
                if let Some(range) = self.rest.get_mut(used) {
                    range.start += part.length;
                    range.length -= part.length;
                }
                if part.length < available {
                    break;
                }
            } else {
                used += 1;
            }
        }
        self.rest.drain(..used);
        if self.block.is_empty() {
            return Err(ShuffleError::Internal("a block without rows"));
        }
        Ok(())
    }

    /// What a block can have of the start of `range`, which may be less than all of it; nothing if
    /// the block has to be written before.
    fn at_hand(&mut self, range: RowRange) -> Result<Option<RowRange>> {
        let chunk = self.groups.len();
        if range.batch < chunk {
            return Ok(Some(range));
        }
        if !self.chunk.contains(&range.start) {
            if self.block.last().is_some_and(|part| part.batch == chunk) {
                return Ok(None);
            }
            let started = Instant::now();
            self.fill_chunk(range)?;
            self.nanos = self.nanos.saturating_add(nanos_since(started));
        }
        Ok(Some(RowRange {
            batch: chunk,
            start: range.start - self.chunk.start,
            length: range.length.min(self.chunk.end - range.start),
        }))
    }

    /// Gathers the part of the order from the start of `range` on, which is a rest of the present
    /// partition: as many rows as a block may have, but whole partitions if it can be.
    fn fill_chunk(&mut self, range: RowRange) -> Result<()> {
        let ahead = self.order.rows().get(range.start..).ok_or(NO_ROW)?;
        let mut most = ahead.len().min(self.block_rows);
        if self.chunk_rows < most {
            // Counting is worth it only where few rows would be left.
            most = match self.chunk_rows {
                MIN_CHUNK_ROWS.. => self.chunk_rows,
                _ => self.count_within(ahead, most)?,
            };
        }
        let end = range.start + most;
        let later = self.order.runs().get(self.order_place.0..);
        let later = later.unwrap_or_default();
        let fitting = later.partition_point(|run| index(run.end).is_ok_and(|run| run <= end));
        let whole = match later.get(..fitting).and_then(<[Run]>::last) {
            Some(run) => index(run.end)?,
            None => end.min(range.start + range.length),
        };
        let rows = ahead.get(..whole - range.start).ok_or(NO_ROW)?;
        let chunk = interleaved(&self.schema, &self.columns, rows, &mut self.indices)?;
        self.rows.replace(self.groups.len(), &chunk)?;
        self.chunk = range.start..whole;
        Ok(())
    }

    /// How many of the first `most` rows have the bytes of one block: at least one, however wide.
    fn count_within(&self, rows: &[RowRef], most: usize) -> Result<usize> {
        let mut bytes = 0_usize;
        for (count, row) in rows.iter().take(most).enumerate() {
            let row = RowRange {
                batch: index(row.batch)?,
                start: index(row.row)?,
                length: 1,
            };
            bytes = bytes.saturating_add(self.unsorted.bytes(row));
            if bytes > self.block_bytes {
                return Ok(count.max(1));
            }
        }
        Ok(most)
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
        let groups = self.groups.iter().map(|group| group.runs.as_slice());
        let groups = groups.zip(&mut self.places);
        let others = (self.order.runs(), &mut self.order_place);
        for (batch, (runs, place)) in groups.chain([others]).enumerate() {
            if let Some(run) = runs.get(place.0).filter(|run| run.partition == next) {
                let start = place.1;
                *place = (place.0 + 1, index(run.end)?);
                self.rest.push(RowRange {
                    batch,
                    start,
                    length: place.1 - start,
                });
            }
        }
        Ok(true)
    }
}
