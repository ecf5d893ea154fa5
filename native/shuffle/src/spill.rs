//! Blocks of many partitions in one temporary file.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::counted_file::CountedFile;
use crate::metrics::wide;
use crate::{BlockSink, Result, ShuffleError};

/// Names a file for spills; called once for a task that spills, never for others.
pub type SpillPath = Arc<dyn Fn() -> io::Result<PathBuf> + Send + Sync>;

/// A run of blocks of one partition in the spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) partition: usize,
    offset: u64,
    pub(crate) length: u64,
}

/// All spills of a task, one after another in one file that is deleted on drop.
pub(crate) struct SpillWriter {
    path: SpillPath,
    file: Option<SpillFile>,
    spills: Vec<SpillIndex>,
    /// The entries of the spill that is being written: partition and length of each extent.
    current: Vec<u8>,
    /// Where that spill and its current extent start.
    spill_start: u64,
    extent_start: u64,
}

/// Where a spill lies in the file: its extents, one after the other, and behind them an entry for
/// each. These stay on disk: thousands of partitions times hundreds of spills are no small thing.
#[derive(Debug, Clone, Copy)]
struct SpillIndex {
    extents: u64,
    entries: u64,
    count: usize,
}

/// An entry is two 64-bit numbers, little-endian.
const ENTRY_BYTES: usize = 16;
/// So many entries of a spill are read at once.
const ENTRIES_AT_ONCE: usize = 64;

impl fmt::Debug for SpillWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.file.as_ref().map(|file| file.out.path());
        write!(f, "SpillWriter({path:?}, {} spills)", self.spills.len())
    }
}

#[derive(Debug)]
struct SpillFile {
    out: CountedFile<File>,
}

impl SpillFile {
    fn create(path: PathBuf) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path);
        let file = file.map_err(|source| ShuffleError::io(&path, source))?;
        Ok(Self {
            out: CountedFile::new(file, path),
        })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = fs::remove_file(self.out.path());
    }
}

impl SpillWriter {
    pub(crate) fn new(path: SpillPath) -> Self {
        Self {
            path,
            file: None,
            spills: Vec::new(),
            current: Vec::new(),
            spill_start: 0,
            extent_start: 0,
        }
    }

    /// The bytes written so far.
    pub(crate) fn total(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.out.total())
    }

    /// The bytes of memory that it holds.
    pub(crate) fn memory_size(&self) -> usize {
        let cursor = size_of::<SpillIndex>() + size_of::<Cursor>() + ENTRIES_AT_ONCE * ENTRY_BYTES;
        self.current.capacity() + self.spills.len() * cursor
    }

    fn open(&mut self) -> Result<&mut SpillFile> {
        if self.file.is_none() {
            let path = (self.path)();
            let path = path.map_err(|source| ShuffleError::io(Path::new("spill file"), source))?;
            self.file = Some(SpillFile::create(path)?);
        }
        self.file
            .as_mut()
            .ok_or(ShuffleError::Internal("no spill file"))
    }

    /// Ends a spill, all of whose extents were written.
    pub(crate) fn end_spill(&mut self) -> Result<()> {
        self.spills.push(SpillIndex {
            extents: self.spill_start,
            entries: self.total(),
            count: self.current.len() / ENTRY_BYTES,
        });
        let entries = std::mem::take(&mut self.current);
        let file = self.open()?;
        file.out.write(&entries)?;
        self.current = entries;
        self.current.clear();
        self.spill_start = self.total();
        self.extent_start = self.spill_start;
        Ok(())
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let file = self.file.as_ref();
        let out = &file.ok_or(ShuffleError::Internal("no spill file"))?.out;
        let read = out.file().read_exact_at(bytes, offset);
        read.map_err(|source| ShuffleError::io(out.path(), source))
    }

    /// Reads the bytes of an extent from a position on.
    pub(crate) fn read_extent(&self, extent: Extent, from: u64, bytes: &mut [u8]) -> Result<()> {
        self.read(extent.offset + from, bytes)
    }

    /// All extents, partition by partition and in each in the order of the spills.
    pub(crate) fn merged(&self) -> Result<MergedExtents<'_>> {
        let mut cursors = Vec::with_capacity(self.spills.len());
        for spill in &self.spills {
            let mut cursor = Cursor {
                rest: *spill,
                read: Vec::new().into_iter(),
                head: None,
            };
            cursor.advance(self)?;
            cursors.push(cursor);
        }
        Ok(MergedExtents {
            spills: self,
            cursors,
        })
    }
}

impl BlockSink for SpillWriter {
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()> {
        self.open()?.out.write(blocks)
    }

    fn end_partition(&mut self, partition: usize, buffered: &[u8]) -> Result<()> {
        let end = self.total() + wide(buffered.len());
        let length = end - self.extent_start;
        self.current
            .extend_from_slice(&wide(partition).to_le_bytes());
        self.current.extend_from_slice(&length.to_le_bytes());
        self.extent_start = end;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.open()?.out.flush()
    }
}

/// The extents of a spill that are still to come.
struct Cursor {
    /// Those that are not read yet.
    rest: SpillIndex,
    read: std::vec::IntoIter<(u64, u64)>,
    head: Option<Extent>,
}

impl Cursor {
    fn advance(&mut self, spills: &SpillWriter) -> Result<()> {
        if self.read.len() == 0 && self.rest.count > 0 {
            let count = self.rest.count.min(ENTRIES_AT_ONCE);
            let mut bytes = vec![0; count * ENTRY_BYTES];
            spills.read(self.rest.entries, &mut bytes)?;
            let (numbers, _) = bytes.as_chunks::<8>();
            let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
            let (partitions, lengths) = (numbers.clone().step_by(2), numbers.skip(1).step_by(2));
            self.read = partitions.zip(lengths).collect::<Vec<_>>().into_iter();
            self.rest.count -= count;
            self.rest.entries += wide(count * ENTRY_BYTES);
        }
        self.head = self.read.next().map(|(partition, length)| Extent {
            partition: usize::try_from(partition).unwrap_or(usize::MAX),
            offset: self.rest.extents,
            length,
        });
        self.rest.extents += self.head.map_or(0, |extent| extent.length);
        Ok(())
    }
}

/// A cursor into each spill.
pub(crate) struct MergedExtents<'a> {
    spills: &'a SpillWriter,
    cursors: Vec<Cursor>,
}

impl MergedExtents<'_> {
    /// The first partition that has extents left.
    pub(crate) fn next_partition(&self) -> Option<usize> {
        let heads = self.cursors.iter().filter_map(|cursor| cursor.head);
        heads.map(|extent| extent.partition).min()
    }

    /// Calls `take` with the extents of `partition`. Partitions have to be asked for in order.
    pub(crate) fn take(
        &mut self,
        partition: usize,
        mut take: impl FnMut(Extent) -> Result<()>,
    ) -> Result<()> {
        for cursor in &mut self.cursors {
            if let Some(extent) = cursor.head.filter(|extent| extent.partition == partition) {
                take(extent)?;
                cursor.advance(self.spills)?;
            }
        }
        Ok(())
    }
}
