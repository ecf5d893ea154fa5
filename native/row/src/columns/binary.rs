//! Strings and binaries.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, NullBuffer};

use super::Shared;
use super::offsets::Offsets;
use crate::bits::Validity;
use crate::error::RowError;
use crate::row::Text;
use crate::source::Source;

/// Texts up to this long are copied as if they were this long, where the row goes on that far. A
/// copy of known size needs no call and no branches on its length.
const BLOCK: usize = 32;

/// Concatenated byte strings with their offsets.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    offsets: Offsets,
    bytes: Vec<u8>,
}

impl Blobs {
    pub(super) fn begin(&mut self, rows: usize) {
        self.bytes.clear();
        let likely = self.offsets.begin(rows);
        // As much as the last `append` will ask for, so that it doesn't grow what is enough.
        self.bytes.reserve_exact(likely + BLOCK);
    }

    /// Appends the bytes of each text.
    ///
    /// # Safety
    ///
    /// The texts must be readable.
    pub(super) unsafe fn append(
        &mut self,
        texts: impl ExactSizeIterator<Item = Text> + Clone,
        shared: &Shared,
    ) -> Result<(), RowError> {
        self.offsets
            .push(texts.clone().map(|text| text.len), shared)?;
        let mut at = self.bytes.len();
        // A short copy may write a block past the end; what comes next overwrites it.
        self.bytes.reserve(self.offsets.end() - at + BLOCK);
        let to = self.bytes.as_mut_ptr();
        for text in texts {
            // SAFETY: the text is readable up to `readable`, and there is room for all texts and a
            // block. The constant length compiles to plain loads and stores.
            unsafe {
                let to = to.add(at);
                if text.len <= BLOCK && text.readable >= BLOCK {
                    std::ptr::copy_nonoverlapping(text.address, to, BLOCK);
                } else {
                    std::ptr::copy_nonoverlapping(text.address, to, text.len);
                }
            }
            at += text.len;
        }
        // SAFETY: `at` bytes are initialised: it grew by what was copied, to the last offset.
        unsafe { self.bytes.set_len(at) };
        Ok(())
    }

    pub(super) fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<BinaryArray, RowError> {
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        Ok(BinaryArray::try_new(self.offsets.finish(), bytes, nulls)?)
    }
}

/// A column of strings or binaries.
#[derive(Debug, Default)]
pub(crate) struct BinaryColumn {
    blobs: Blobs,
    pub(super) validity: Validity,
}

impl BinaryColumn {
    pub(super) fn begin(&mut self, rows: usize) {
        self.validity.begin();
        self.blobs.begin(rows);
    }

    pub(super) fn append<S: Source>(
        &mut self,
        source: S,
        shared: &mut Shared,
    ) -> Result<(), RowError> {
        source.validity(&mut self.validity);
        source.locate(&mut shared.texts)?;
        // SAFETY: the source found each text inside readable memory.
        unsafe { self.blobs.append(shared.texts.iter().copied(), shared) }
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, RowError> {
        Ok(Arc::new(self.blobs.finish(self.validity.finish())?))
    }
}
