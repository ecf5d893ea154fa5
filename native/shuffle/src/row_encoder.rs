//! Rows that the JVM collected in pages, to blocks.

use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use comet_block::{BlockRows, BlockStats, BlockWriter, Codec, RowRange};
use comet_row::{
    RowError, RowPage, RowPointer, RowTransposer, SparkSchema, UnsafeRowRef, rows_in_page,
};

use crate::Result;
use crate::metrics::{nanos_since, wide};

/// About the most bytes of rows that are transposed at a time, unless a single row has more. What is
/// needed beside the rows stays a small multiple of it.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// Partitions are transposed together until they have this many bytes of rows. What is needed beside
/// the rows is charged to Spark for as long as the task runs, so it should be little where memory is.
const GROUP_BYTES: usize = 512 << 10;

/// [`RowEncoder::encode_sorted`] returns when it has made this many bytes of blocks.
const ENOUGH_BYTES: usize = 256 << 10;

/// What one call of [`RowEncoder`] did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EncodeStats {
    /// Nanoseconds of transposing rows and making payloads.
    pub encode_nanos: u64,
    /// Nanoseconds in the codec.
    pub compress_nanos: u64,
    /// Bytes that the encoder used: its buffers and the largest batch.
    pub memory: u64,
    /// Blocks made.
    pub blocks: u64,
}

/// Blocks of one partition that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionBlocks {
    /// The partition.
    pub partition: u32,
    /// The bytes of its blocks.
    pub bytes: usize,
}

/// How sorted rows become blocks.
#[derive(Debug, Clone, Copy)]
pub struct SortedRowsOptions {
    /// The most rows of a block, at least 1.
    pub block_rows: usize,
    /// The most entries of [`RowEncoder::partitions`], at least 1.
    pub max_partitions: usize,
    /// Whether these are the last rows of their partitions in the task.
    pub last: bool,
}

/// Turns rows in pages into blocks. Its buffers live as long as the task.
pub struct RowEncoder {
    transposer: RowTransposer,
    schema: SchemaRef,
    writer: BlockWriter,
    rows: Vec<UnsafeRowRef>,
    parts: Vec<Part>,
    blocks: Vec<u8>,
    partitions: Vec<PartitionBlocks>,
}

/// Rows of one partition in a batch.
#[derive(Clone, Copy)]
struct Part {
    partition: u32,
    range: RowRange,
    /// Whether the sorted rows have no more of the partition.
    complete: bool,
}

impl RowEncoder {
    /// An encoder of rows of the schema that `descriptor` describes (see [`SparkSchema::parse`]).
    ///
    /// # Errors
    ///
    /// If the descriptor is invalid, blocks cannot hold the types, or the codec cannot be set up.
    pub fn new(descriptor: &[u8], codec: Codec) -> Result<Self> {
        let schema = SparkSchema::parse(descriptor)?;
        let arrow_schema = schema.arrow_schema();
        Ok(Self {
            writer: BlockWriter::new(SchemaRef::clone(&arrow_schema), codec)?,
            transposer: RowTransposer::new(schema)?,
            schema: arrow_schema,
            rows: Vec::new(),
            parts: Vec::new(),
            blocks: Vec::new(),
            partitions: Vec::new(),
        })
    }

    /// Encodes the rows of `pages` (address and used bytes of each), in order, as blocks of one
    /// partition, which [`RowEncoder::blocks`] then has. Without rows there is the end marker if
    /// `last` is set, else nothing.
    ///
    /// # Errors
    ///
    /// If the pages don't hold rows of the schema, or a block cannot be made.
    ///
    /// # Safety
    ///
    /// The pages must stay readable and unchanged during the call.
    pub unsafe fn encode(&mut self, pages: &[RowPage], last: bool) -> Result<EncodeStats> {
        self.blocks.clear();
        self.rows.clear();
        let mut stats = EncodeStats::default();
        for (page, used) in pages {
            // SAFETY: the caller vouches for the pages.
            unsafe { rows_in_page(*page, *used, &mut self.rows) }?;
        }
        let rows = std::mem::take(&mut self.rows);
        let result = if !rows.is_empty() {
            // SAFETY: the rows lie in the pages, which the caller vouches for.
            unsafe { self.encode_rows(&rows, last, &mut stats) }
        } else {
            if last {
                self.writer.write_end(&mut self.blocks);
                stats.blocks += 1;
            }
            Ok(())
        };
        self.rows = rows;
        result?;
        Ok(self.with_buffers(stats))
    }

    /// Encodes rows that are sorted by partition, from the first on, until enough bytes of blocks
    /// are made or the rows end. Returns how many rows were encoded, at least one if there are any.
    /// [`RowEncoder::blocks`] has the blocks then, [`RowEncoder::partitions`] whose they are.
    ///
    /// Small partitions are transposed together; each still gets blocks of its own.
    ///
    /// # Errors
    ///
    /// If a pointer doesn't point at a row of the schema, or a block cannot be made.
    ///
    /// # Safety
    ///
    /// The pages must stay readable and unchanged during the call.
    pub unsafe fn encode_sorted(
        &mut self,
        pages: &[RowPage],
        pointers: &[RowPointer],
        options: SortedRowsOptions,
    ) -> Result<(usize, EncodeStats)> {
        self.blocks.clear();
        self.partitions.clear();
        let mut stats = EncodeStats::default();
        let mut rest = pointers;
        while !rest.is_empty()
            && self.blocks.len() < ENOUGH_BYTES
            && self.partitions.len() < options.max_partitions
        {
            // SAFETY: the caller vouches for the pages.
            let batch = unsafe { self.next_batch(pages, rest, options, &mut stats) }?;
            rest = rest.get(self.rows.len()..).unwrap_or_default();
            self.write_parts(&batch, options.last, &mut stats)?;
        }
        let encoded = pointers.len() - rest.len();
        Ok((encoded, self.with_buffers(stats)))
    }

    /// The blocks that the last call made.
    pub fn blocks(&mut self) -> &mut [u8] {
        &mut self.blocks
    }

    /// The partitions of the blocks that the last call of [`RowEncoder::encode_sorted`] made.
    pub fn partitions(&self) -> &[PartitionBlocks] {
        &self.partitions
    }

    /// # Safety
    ///
    /// The rows must be readable.
    unsafe fn encode_rows(
        &mut self,
        rows: &[UnsafeRowRef],
        last: bool,
        stats: &mut EncodeStats,
    ) -> Result<()> {
        let started = Instant::now();
        // SAFETY: the caller vouches for the rows.
        let batch = match unsafe { self.transposer.transpose(rows) } {
            Err(RowError::BatchTooLarge { .. }) if rows.len() > 1 => {
                let (left, right) = rows.split_at(rows.len() / 2);
                // SAFETY: as above.
                unsafe { self.encode_rows(left, false, stats) }?;
                // SAFETY: as above.
                return unsafe { self.encode_rows(right, last, stats) };
            }
            other => other?,
        };
        stats.encode_nanos += nanos_since(started);
        stats.count_batch(&batch);
        let block = self.writer.write(&batch, last, &mut self.blocks)?;
        stats.count_block(block);
        Ok(())
    }

    /// Transposes the first of `pointers`: whole partitions while they fit in a block together, or
    /// as much of a large one as makes a block.
    ///
    /// # Safety
    ///
    /// The pages must be readable.
    unsafe fn next_batch(
        &mut self,
        pages: &[RowPage],
        pointers: &[RowPointer],
        options: SortedRowsOptions,
        stats: &mut EncodeStats,
    ) -> Result<RecordBatch> {
        let started = Instant::now();
        let max_parts = options.max_partitions - self.partitions.len();
        self.rows.clear();
        self.parts.clear();
        let mut bytes = 0;
        let mut rest = pointers;
        while let Some(first) = rest.first()
            && self.parts.len() < max_parts
            && (bytes < GROUP_BYTES || self.parts.is_empty())
        {
            let before = self.rows.len();
            let room = options.block_rows - before;
            let mut complete = true;
            for pointer in rest {
                if pointer.partition() != first.partition() {
                    break;
                }
                // SAFETY: the caller vouches for the pages.
                let row = unsafe { pointer.row(pages) }?;
                if self.rows.len() - before == room
                    || (bytes + row.bytes() > MAX_BATCH_BYTES && !self.rows.is_empty())
                {
                    complete = false;
                    break;
                }
                bytes += row.bytes();
                self.rows.push(row);
            }
            if !complete && before > 0 {
                // It starts the next batch, so that its rows don't become two small blocks.
                self.rows.truncate(before);
                break;
            }
            let length = self.rows.len() - before;
            self.parts.push(Part {
                partition: first.partition(),
                range: RowRange {
                    batch: 0,
                    start: before,
                    length,
                },
                complete,
            });
            rest = rest.get(length..).unwrap_or_default();
            if !complete {
                break;
            }
        }
        // SAFETY: the rows lie in the pages, which the caller vouches for.
        let batch = unsafe { self.transposer.transpose(&self.rows) }?;
        stats.encode_nanos += nanos_since(started);
        stats.count_batch(&batch);
        Ok(batch)
    }

    fn write_parts(
        &mut self,
        batch: &RecordBatch,
        last: bool,
        stats: &mut EncodeStats,
    ) -> Result<()> {
        let started = Instant::now();
        let rows = BlockRows::new(&self.schema, std::slice::from_ref(batch))?;
        stats.encode_nanos += nanos_since(started);
        for part in &self.parts {
            let start = self.blocks.len();
            let last = last && part.complete;
            let block = self
                .writer
                .write_rows(&rows, &[part.range], last, &mut self.blocks)?;
            stats.count_block(block);
            let bytes = self.blocks.len() - start;
            match self.partitions.last_mut() {
                Some(entry) if entry.partition == part.partition => entry.bytes += bytes,
                _ => self.partitions.push(PartitionBlocks {
                    partition: part.partition,
                    bytes,
                }),
            }
        }
        Ok(())
    }

    fn with_buffers(&self, mut stats: EncodeStats) -> EncodeStats {
        let buffers = self.rows.capacity() * size_of::<UnsafeRowRef>()
            + self.parts.capacity() * size_of::<Part>()
            + self.partitions.capacity() * size_of::<PartitionBlocks>()
            + self.blocks.capacity()
            + self.writer.memory_size();
        stats.memory += wide(buffers);
        stats
    }
}

impl EncodeStats {
    fn count_batch(&mut self, batch: &RecordBatch) {
        self.memory = self.memory.max(wide(batch.get_array_memory_size()));
    }

    fn count_block(&mut self, block: BlockStats) {
        self.encode_nanos += block.encode_nanos;
        self.compress_nanos += block.compress_nanos;
        self.blocks += 1;
    }
}
