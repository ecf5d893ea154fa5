use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use comet_block::{BlockRows, BlockStats, RowRange};

use crate::metrics::wide;
use crate::pending::Pending;
use crate::{Result, ShuffleScratch};

/// Less is not worth being read at once.
const MIN_PIECE: usize = 4096;

/// Where the bytes of blocks go. They come in large pieces: nothing has to be buffered.
pub trait BlockSink {
    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()>;

    /// Ends `partition`: everything since the last one ended belongs to it, up to the end of
    /// `buffered`, which is all that was not written yet and will be next. Partitions without bytes
    /// need no call.
    ///
    /// # Errors
    ///
    /// If there is no such partition.
    fn end_partition(&mut self, partition: usize, buffered: &[u8]) -> Result<()>;

    /// Writes out what was taken.
    ///
    /// # Errors
    ///
    /// If that fails.
    fn flush(&mut self) -> Result<()>;
}

impl<S: BlockSink> BlockSink for &mut S {
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()> {
        (**self).write_blocks(blocks)
    }

    fn end_partition(&mut self, partition: usize, buffered: &[u8]) -> Result<()> {
        (**self).end_partition(partition, buffered)
    }

    fn flush(&mut self) -> Result<()> {
        (**self).flush()
    }
}

/// Turns batches into blocks and collects these in the scratch buffer until they are worth a call
/// of the sink.
///
/// The scratch is handed to every call, since all writers of a task share it. Before another
/// writer uses it this one has to be drained.
#[derive(Debug)]
pub struct BufBatchWriter<S> {
    sink: S,
    /// The scratch buffer is drained when it holds about this much.
    write_size: usize,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Passthrough,
    Coalesce(Pending),
}

impl<S: BlockSink> BufBatchWriter<S> {
    /// A writer that joins small batches, and cuts large ones, into blocks of up to `block_rows`
    /// rows and about `block_bytes` bytes. `schema` is the object that the scratch was made with.
    pub fn new(
        sink: S,
        write_size: usize,
        schema: SchemaRef,
        block_rows: usize,
        block_bytes: usize,
    ) -> Self {
        Self {
            sink,
            write_size,
            mode: Mode::Coalesce(Pending::new(schema, block_rows, block_bytes)),
        }
    }

    /// A writer that makes every batch a block of its own, in order.
    pub fn new_passthrough(sink: S, write_size: usize) -> Self {
        Self {
            sink,
            write_size,
            mode: Mode::Passthrough,
        }
    }

    /// The sink. What isn't drained has not reached it.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The sink, when writing is done.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Writes `batch`. `last` marks the last block of the partition: it is the block that holds
    /// the batch's last row.
    ///
    /// # Errors
    ///
    /// If the block cannot be made or written.
    pub fn write(
        &mut self,
        batch: &RecordBatch,
        last: bool,
        scratch: &mut ShuffleScratch,
    ) -> Result<()> {
        if let Mode::Coalesce(pending) = &mut self.mode {
            let rows = BlockRows::new(pending.schema(), std::slice::from_ref(batch))?;
            let mut rest = RowRange {
                batch: 0,
                start: 0,
                length: batch.num_rows(),
            };
            loop {
                pending.add(batch, &rows, &mut rest);
                if rest.length == 0 {
                    break;
                }
                write_taken(&mut self.sink, self.write_size, pending, false, scratch)?;
            }
            if last {
                return self.end(scratch);
            }
            return Ok(());
        }
        let stats = scratch.blocks.write(batch, last, &mut scratch.buffer)?;
        written(&mut self.sink, self.write_size, &stats, scratch)
    }

    /// Writes the rows that wait for more, if there are any, as a block that is not the last one.
    ///
    /// # Errors
    ///
    /// If the block cannot be made or written.
    pub fn write_pending(&mut self, scratch: &mut ShuffleScratch) -> Result<()> {
        match &mut self.mode {
            Mode::Coalesce(pending) if pending.rows() > 0 => {
                write_taken(&mut self.sink, self.write_size, pending, false, scratch)
            }
            _ => Ok(()),
        }
    }

    /// Writes the rows `ranges` as a block of their own, after those that wait for more.
    ///
    /// # Errors
    ///
    /// If a block cannot be made or written.
    pub fn write_rows(
        &mut self,
        rows: &BlockRows,
        ranges: &[RowRange],
        last: bool,
        scratch: &mut ShuffleScratch,
    ) -> Result<()> {
        self.write_pending(scratch)?;
        write_rows(&mut self.sink, self.write_size, rows, ranges, last, scratch)
    }

    /// Ends a partition: its pending rows become its last block; without any, a block without
    /// rows says that it was the last.
    ///
    /// # Errors
    ///
    /// If the block cannot be made or written.
    pub fn end(&mut self, scratch: &mut ShuffleScratch) -> Result<()> {
        match &mut self.mode {
            Mode::Coalesce(pending) if pending.rows() > 0 => {
                write_taken(&mut self.sink, self.write_size, pending, true, scratch)
            }
            _ => {
                scratch.blocks.write_end(&mut scratch.buffer);
                Ok(())
            }
        }
    }

    /// Appends `length` bytes of whole blocks that were made before. `read` puts those from a
    /// position on into a piece of the buffer.
    ///
    /// # Errors
    ///
    /// If they cannot be read or written.
    pub fn copy(
        &mut self,
        length: u64,
        scratch: &mut ShuffleScratch,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut from = 0;
        while from < length {
            let start = scratch.buffer.len();
            let room = self.write_size.saturating_sub(start).max(MIN_PIECE);
            let piece = usize::try_from(length - from).map_or(room, |left| left.min(room));
            scratch.buffer.resize(start + piece, 0);
            let place = scratch.buffer.get_mut(start..).unwrap_or_default();
            read(from, place)?;
            from += wide(piece);
            if scratch.buffer.len() >= self.write_size {
                self.drain(scratch)?;
            }
        }
        Ok(())
    }

    /// Ends `partition`: all that was written since the last one ended belongs to it.
    ///
    /// # Errors
    ///
    /// If there is no such partition.
    pub fn end_partition(&mut self, partition: usize, scratch: &ShuffleScratch) -> Result<()> {
        self.sink.end_partition(partition, &scratch.buffer)
    }

    /// The rows that wait for more.
    pub fn pending_rows(&self) -> usize {
        match &self.mode {
            Mode::Passthrough => 0,
            Mode::Coalesce(pending) => pending.rows(),
        }
    }

    /// About how many bytes they will take in a block.
    pub fn pending_bytes(&self) -> usize {
        match &self.mode {
            Mode::Passthrough => 0,
            Mode::Coalesce(pending) => pending.bytes(),
        }
    }

    /// Sets how much is collected for a call of the sink.
    pub fn set_write_size(&mut self, write_size: usize) {
        self.write_size = write_size;
    }

    /// Hands the buffered blocks to the sink without flushing that.
    ///
    /// # Errors
    ///
    /// If the sink fails.
    pub fn drain(&mut self, scratch: &mut ShuffleScratch) -> Result<()> {
        drain(&mut self.sink, scratch)
    }

    /// Drains, and flushes the sink.
    ///
    /// # Errors
    ///
    /// If the sink fails.
    pub fn flush(&mut self, scratch: &mut ShuffleScratch) -> Result<()> {
        self.drain(scratch)?;
        self.sink.flush()
    }
}

/// Writes all rows that wait as a block.
fn write_taken<S: BlockSink>(
    sink: &mut S,
    write_size: usize,
    pending: &mut Pending,
    last: bool,
    scratch: &mut ShuffleScratch,
) -> Result<()> {
    let (rows, ranges) = pending.take()?;
    write_rows(sink, write_size, &rows, &ranges, last, scratch)
}

fn write_rows<S: BlockSink>(
    sink: &mut S,
    write_size: usize,
    rows: &BlockRows,
    ranges: &[RowRange],
    last: bool,
    scratch: &mut ShuffleScratch,
) -> Result<()> {
    let blocks = &mut scratch.blocks;
    let stats = blocks.write_rows(rows, ranges, last, &mut scratch.buffer)?;
    written(sink, write_size, &stats, scratch)
}

fn written<S: BlockSink>(
    sink: &mut S,
    write_size: usize,
    stats: &BlockStats,
    scratch: &mut ShuffleScratch,
) -> Result<()> {
    scratch.metrics.add_block(stats);
    // Not when the buffer is full but when another such block would make it grow.
    let length = wide(scratch.buffer.len()).saturating_add(stats.stored_length);
    if length >= wide(write_size) {
        drain(sink, scratch)?;
    }
    Ok(())
}

fn drain<S: BlockSink>(sink: &mut S, scratch: &mut ShuffleScratch) -> Result<()> {
    if scratch.buffer.is_empty() {
        return Ok(());
    }
    let drained = sink.write_blocks(&scratch.buffer);
    scratch.buffer.clear();
    drained
}
