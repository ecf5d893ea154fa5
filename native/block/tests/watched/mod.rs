//! Reads blocks under a limit for allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use arrow_array::Array;
use arrow_schema::SchemaRef;
use comet_block::{BlockError, BlockReader, DecodedBlock};

/// Remembers the largest allocation of each thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller keeps this method's contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps this method's contract, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Reads one block and checks that no allocation was larger than `most` bytes.
pub fn read_within(
    schema: SchemaRef,
    block: &[u8],
    most: usize,
) -> Result<DecodedBlock, BlockError> {
    let mut reader = BlockReader::new(schema).unwrap();
    LARGEST.set(0);
    let result = reader.read(block);
    let largest = LARGEST.get();
    assert!(
        largest <= most,
        "an allocation of {largest} bytes for a block of {}",
        block.len()
    );
    if let Ok(decoded) = &result {
        for column in decoded.batch.columns() {
            column.to_data().validate_full().unwrap();
        }
    }
    result
}

/// The message of the error that a corrupt block must give.
pub fn corrupt(result: Result<DecodedBlock, BlockError>) -> String {
    match result {
        Err(BlockError::Corrupt(message)) => message,
        other => panic!("expected a corrupt block, got {other:?}"),
    }
}
