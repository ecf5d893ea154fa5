use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::time::Instant;

use crate::checksum::Checksum;
use crate::counted_file::CountedFile;
use crate::metrics::{nanos_since, wide};
use crate::{BlockSink, ChecksumAlgorithm, Result, ShuffleError};

/// The lengths and checksums of a map task's partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionOutput {
    /// The length of each partition in the file in bytes, in order and without gaps.
    pub lengths: Vec<u64>,
    /// The checksum of each partition's bytes, that of no bytes included; none without an
    /// algorithm.
    pub checksums: Vec<u32>,
}

/// Writes the final data file: partitions in order, each from extents of spills and blocks.
///
/// The offsets are a running total, which is compared with the file's position once, at the end.
/// A file that isn't finished is deleted.
#[derive(Debug)]
pub struct LocalPartitionWriter<W = File> {
    out: CountedFile<W>,
    partition_start: u64,
    output: PartitionOutput,
    checksum: Checksum,
    /// How much of what comes next is in the checksum already.
    checked: usize,
    guard: Guard,
    write_nanos: u64,
}

/// Deletes the file unless it is to be kept.
#[derive(Debug)]
struct Guard {
    path: PathBuf,
    keep: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.keep {
            // There is nobody to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LocalPartitionWriter<File> {
    /// Creates the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Io`] if that fails.
    pub fn create(path: PathBuf, partitions: usize, algorithm: ChecksumAlgorithm) -> Result<Self> {
        let file = File::create(&path).map_err(|source| ShuffleError::io(&path, source))?;
        Ok(Self::new(file, path, partitions, algorithm))
    }
}

impl<W: Write + Seek> LocalPartitionWriter<W> {
    /// Writes into `file`, which is empty and lies at `path`.
    pub fn new(file: W, path: PathBuf, partitions: usize, algorithm: ChecksumAlgorithm) -> Self {
        let mut checksum = Checksum::new(algorithm);
        let checksums = match algorithm {
            ChecksumAlgorithm::None => Vec::new(),
            _ => vec![checksum.take(); partitions],
        };
        Self {
            guard: Guard {
                path: path.clone(),
                keep: false,
            },
            out: CountedFile::new(file, path),
            partition_start: 0,
            output: PartitionOutput {
                lengths: vec![0; partitions],
                checksums,
            },
            checksum,
            checked: 0,
            write_nanos: 0,
        }
    }

    /// Flushes the file, for the first and last time, and checks that it is where the running
    /// total says.
    ///
    /// # Errors
    ///
    /// [`ShuffleError::Io`], or [`ShuffleError::Position`] if the total is another. The file is
    /// deleted then.
    pub fn finish_all(mut self) -> Result<PartitionOutput> {
        let lengths = self.output.lengths.iter();
        if lengths.sum::<u64>() != self.out.total() {
            return Err(ShuffleError::Internal("bytes that belong to no partition"));
        }
        self.out.flush()?;
        self.out.check_position()?;
        self.guard.keep = true;
        Ok(self.output)
    }

    /// Brings the checksum up to the end of `bytes`, which come next.
    fn check(&mut self, bytes: &[u8]) {
        let unchecked = bytes.get(self.checked..).unwrap_or_default();
        self.checksum.update(unchecked);
        self.checked = bytes.len();
    }

    /// Nanoseconds spent on writing.
    pub(crate) fn write_nanos(&self) -> u64 {
        self.write_nanos
    }
}

impl<W: Write + Seek> BlockSink for LocalPartitionWriter<W> {
    fn write_blocks(&mut self, blocks: &[u8]) -> Result<()> {
        let started = Instant::now();
        self.check(blocks);
        self.checked = 0;
        let written = self.out.write(blocks);
        self.write_nanos += nanos_since(started);
        written
    }

    fn end_partition(&mut self, partition: usize, buffered: &[u8]) -> Result<()> {
        self.check(buffered);
        let end = self.out.total() + wide(buffered.len());
        let missing = ShuffleError::Internal("no such partition");
        let length = self.output.lengths.get_mut(partition).ok_or(missing)?;
        *length = end - self.partition_start;
        self.partition_start = end;
        if let Some(checksum) = self.output.checksums.get_mut(partition) {
            *checksum = self.checksum.take();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}
