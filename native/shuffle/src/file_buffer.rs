//! Buffered bytes on their way to a file, counted.

use std::io::{Seek, Write};
use std::path::PathBuf;

use crate::metrics::wide;
use crate::{Result, ShuffleError};

/// A file that is only appended to. Its position is counted, not asked for.
#[derive(Debug)]
pub(crate) struct FileBuffer<W> {
    file: W,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Writes are at least this long, but for the last one.
    write_size: usize,
    total: u64,
}

impl<W: Write> FileBuffer<W> {
    pub(crate) fn new(file: W, path: PathBuf, write_size: usize) -> Self {
        Self {
            file,
            path,
            buffer: Vec::new(),
            write_size,
            total: 0,
        }
    }

    /// The bytes written so far: where the next one goes.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    pub(crate) fn file(&self) -> &W {
        &self.file
    }

    pub(crate) fn memory_size(&self) -> usize {
        self.buffer.capacity()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.total += wide(bytes.len());
        if self.buffer.len() + bytes.len() >= self.write_size {
            self.write_out()?;
            if bytes.len() >= self.write_size {
                return self.write_file(bytes);
            }
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.write_size);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Hands what is buffered to the file, without flushing that.
    pub(crate) fn write_out(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write_file(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write_out()?;
        let flushed = self.file.flush();
        flushed.map_err(|source| ShuffleError::io(&self.path, source))
    }

    fn write_file(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| ShuffleError::io(&self.path, source))
    }
}

impl<W: Write + Seek> FileBuffer<W> {
    /// Compares the running total with where the file is. Call it after a flush.
    pub(crate) fn check_position(&mut self) -> Result<()> {
        let position = self.file.stream_position();
        let actual = position.map_err(|source| ShuffleError::io(&self.path, source))?;
        if actual == self.total {
            return Ok(());
        }
        Err(ShuffleError::Position {
            path: self.path.clone(),
            expected: self.total,
            actual,
        })
    }
}
