//! A file whose position is counted, not asked for.

use std::io::{Seek, Write};
use std::path::PathBuf;

use crate::metrics::wide;
use crate::{Result, ShuffleError};

/// A file that is only appended to.
#[derive(Debug)]
pub(crate) struct CountedFile<W> {
    file: W,
    path: PathBuf,
    total: u64,
}

impl<W: Write> CountedFile<W> {
    pub(crate) fn new(file: W, path: PathBuf) -> Self {
        Self {
            file,
            path,
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

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|source| ShuffleError::io(&self.path, source))?;
        self.total += wide(bytes.len());
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|source| ShuffleError::io(&self.path, source))
    }
}

impl<W: Write + Seek> CountedFile<W> {
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
