//! What batches keep in memory.

use std::collections::HashSet;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;

/// The allocations that staged batches pin. Slices of one buffer pin it once, and whole.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    allocations: HashSet<usize>,
}

impl Pinned {
    /// The bytes that `batch` would pin in addition.
    pub(crate) fn added_bytes(&self, batch: &RecordBatch) -> usize {
        let mut seen = HashSet::new();
        let mut bytes = 0;
        visit(batch, &mut |address, capacity| {
            if !self.allocations.contains(&address) && seen.insert(address) {
                bytes += capacity;
            }
        });
        bytes
    }

    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        visit(batch, &mut |address, _| {
            self.allocations.insert(address);
        });
    }

    /// Forgets all: the batches were let go.
    pub(crate) fn clear(&mut self) {
        self.allocations.clear();
    }
}

fn visit(batch: &RecordBatch, each: &mut impl FnMut(usize, usize)) {
    for column in batch.columns() {
        visit_data(&column.to_data(), each);
    }
}

fn visit_data(data: &ArrayData, each: &mut impl FnMut(usize, usize)) {
    let mut buffer = |buffer: &Buffer| {
        if buffer.capacity() > 0 {
            each(buffer.data_ptr().as_ptr().addr(), buffer.capacity());
        }
    };
    data.buffers().iter().for_each(&mut buffer);
    if let Some(nulls) = data.nulls() {
        buffer(nulls.buffer());
    }
    for child in data.child_data() {
        visit_data(child, each);
    }
}
