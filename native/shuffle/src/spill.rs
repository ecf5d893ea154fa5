//! Blocks of many partitions in one temporary file.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file_buffer::FileBuffer;
use crate::{BlockSink, Result, ShuffleError};

/// Names a file for spills; called once for a task that spills, never for others.
pub type SpillPath = Arc<dyn Fn() -> io::Result<PathBuf> + Send + Sync>;

/// How much of an extent is read at once.
const READ_SIZE: usize = 1 << 20;

/// A run of blocks of one partition in the spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) partition: usize,
    offset: u64,
    length: u64,
}

/// All spills of a task, one after another in one file that is deleted on drop.
pub(crate) struct SpillWriter {
    path: SpillPath,
    write_size: usize,
    file: Option<SpillFile>,
    /// The extents of each spill in the order of their partitions.
    spills: Vec<Vec<Extent>>,
    /// Of the spill that is being written.
    current: Vec<Extent>,
    extent_start: u64,
}

impl fmt::Debug for SpillWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.file.as_ref().map(|file| file.out.path());
        write!(f, "SpillWriter({path:?}, {} spills)", self.spills.len())
    }
}

#[derive(Debug)]
struct SpillFile {
    out: FileBuffer<File>,
}

impl SpillFile {
    fn create(path: PathBuf, write_size: usize) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path);
        let file = file.map_err(|source| ShuffleError::io(&path, source))?;
        Ok(Self {
            out: FileBuffer::new(file, path, write_size),
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
    pub(crate) fn new(path: SpillPath, write_size: usize) -> Self {
        Self {
            path,
            write_size,
            file: None,
            spills: Vec::new(),
            current: Vec::new(),
            extent_start: 0,
        }
    }

    /// The bytes written so far.
    pub(crate) fn total(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.out.total())
    }

    /// The bytes of memory that it holds.
    pub(crate) fn memory_size(&self) -> usize {
        let extents = self.spills.iter().map(Vec::capacity).sum::<usize>();
        let buffer = self.file.as_ref().map_or(0, |file| file.out.memory_size());
        extents * size_of::<Extent>() + buffer
    }

    fn open(&mut self) -> Result<&mut SpillFile> {
        if self.file.is_none() {
            let path = (self.path)();
            let path = path.map_err(|source| ShuffleError::io(Path::new("spill file"), source))?;
            self.file = Some(SpillFile::create(path, self.write_size)?);
        }
        self.file
            .as_mut()
            .ok_or(ShuffleError::Internal("no spill file"))
    }

    /// Ends `partition`: everything since the last one ended belongs to it.
    pub(crate) fn end_partition(&mut self, partition: usize) {
        let total = self.total();
        self.current.push(Extent {
            partition,
            offset: self.extent_start,
            length: total - self.extent_start,
        });
        self.extent_start = total;
    }

    /// Ends a spill.
    pub(crate) fn end_spill(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.out.write_out()?;
        }
        let mut extents = std::mem::take(&mut self.current);
        extents.shrink_to_fit();
        self.spills.push(extents);
        Ok(())
    }

    /// Reads an extent piece by piece through `buffer`.
    pub(crate) fn read_extent(
        &self,
        extent: Extent,
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let file = self.file.as_ref();
        let out = &file.ok_or(ShuffleError::Internal("no spill file"))?.out;
        let (mut offset, mut left) = (extent.offset, extent.length);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(READ_SIZE).min(READ_SIZE);
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            let piece = buffer.get_mut(..length).unwrap_or_default();
            let read = out.file().read_exact_at(piece, offset);
            read.map_err(|source| ShuffleError::io(out.path(), source))?;
            take(piece)?;
            let length = crate::metrics::wide(length);
            offset += length;
            left -= length;
        }
        Ok(())
    }

    /// All extents, partition by partition and in each in the order of the spills.
    pub(crate) fn merged(&self) -> MergedExtents<'_> {
        MergedExtents {
            rest: self.spills.iter().map(Vec::as_slice).collect(),
        }
    }
}

impl BlockSink for SpillWriter {
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()> {
        self.open()?.out.write(blocks)
    }

    fn flush(&mut self) -> Result<()> {
        self.open()?.out.flush()
    }
}

/// A cursor into each spill.
pub(crate) struct MergedExtents<'a> {
    rest: Vec<&'a [Extent]>,
}

impl MergedExtents<'_> {
    /// The first partition that has extents left.
    pub(crate) fn next_partition(&self) -> Option<usize> {
        let heads = self.rest.iter().filter_map(|rest| rest.first());
        heads.map(|extent| extent.partition).min()
    }

    /// Calls `take` with the extents of `partition`. Partitions have to be asked for in order.
    pub(crate) fn take(
        &mut self,
        partition: usize,
        mut take: impl FnMut(Extent) -> Result<()>,
    ) -> Result<()> {
        for rest in &mut self.rest {
            if let Some((extent, others)) = rest.split_first()
                && extent.partition == partition
            {
                take(*extent)?;
                *rest = others;
            }
        }
        Ok(())
    }
}
