//! Where the buffers of a batch lie, for the JVM's vectors.

use std::collections::HashMap;

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::error::BridgeError;

/// Numbers for each vector: null count, and addresses of validity, offsets and values (0 for none).
const ENTRIES: usize = 4;

/// The buffers of a batch's columns, which the other functions look at.
pub(crate) fn columns(batch: &RecordBatch) -> Vec<ArrayData> {
    batch.columns().iter().map(Array::to_data).collect()
}

/// The numbers of all vectors, in pre-order. Map entries are no vector of their own: key and value
/// come right behind the map.
pub(crate) fn describe(columns: &[ArrayData]) -> Result<Vec<i64>, BridgeError> {
    let mut numbers = Vec::new();
    for column in columns {
        describe_array(column, &mut numbers)?;
    }
    Ok(numbers)
}

fn describe_array(data: &ArrayData, out: &mut Vec<i64>) -> Result<(), BridgeError> {
    let nulls = data.nulls();
    if data.offset() != 0 || nulls.is_some_and(|nulls| nulls.offset() != 0) {
        return Err(BridgeError::Argument(format!(
            "a decoded {} array does not start at its buffers' start",
            data.data_type()
        )));
    }
    let validity = nulls.map_or(0, |nulls| address(nulls.buffer().as_ptr()));
    let buffer = |index: usize| {
        data.buffers()
            .get(index)
            .map_or(0, |buffer| address(buffer.as_ptr()))
    };
    let (offsets, values) = match data.data_type() {
        DataType::Binary | DataType::List(_) | DataType::Map(_, _) => (buffer(0), buffer(1)),
        _ => (0, buffer(0)),
    };
    let null_count = match data.data_type() {
        DataType::Null => data.len(),
        _ => data.null_count(),
    };
    let null_count = i64::try_from(null_count)
        .map_err(|_| BridgeError::Argument(format!("{null_count} nulls in one vector")))?;
    let entry: [i64; ENTRIES] = [null_count, validity, offsets, values];
    out.extend_from_slice(&entry);
    let is_map = matches!(data.data_type(), DataType::Map(_, _));
    for child in data.child_data() {
        if is_map {
            for field in child.child_data() {
                describe_array(field, out)?;
            }
        } else {
            describe_array(child, out)?;
        }
    }
    Ok(())
}

/// Bytes of the allocations that a batch keeps alive. The buffers of a decoded block share one, which counts once.
pub(crate) fn memory_size(columns: &[ArrayData]) -> usize {
    let mut allocations = HashMap::new();
    for column in columns {
        note_allocations(column, &mut allocations);
    }
    allocations.values().sum()
}

fn note_allocations(data: &ArrayData, allocations: &mut HashMap<usize, usize>) {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        allocations.insert(buffer.data_ptr().as_ptr() as usize, buffer.capacity());
    }
    for child in data.child_data() {
        note_allocations(child, allocations);
    }
}

/// An address as the JVM carries it.
#[allow(clippy::cast_possible_wrap)]
pub(crate) fn address(pointer: *const u8) -> i64 {
    pointer as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use comet_block::{BlockReader, BlockWriter, Codec};
    use std::sync::Arc;

    #[test]
    fn the_allocation_of_a_block_counts_once() {
        let longs = (0..16).map(|i| {
            let values = arrow_array::Int64Array::from_iter_values(i..i + 8192);
            (format!("c{i}"), Arc::new(values) as arrow_array::ArrayRef)
        });
        let batch = RecordBatch::try_from_iter(longs).unwrap();
        let mut block = Vec::new();
        let mut writer = BlockWriter::new(batch.schema(), Codec::None).unwrap();
        writer.write(&batch, true, &mut block).unwrap();
        let decoded = BlockReader::new(batch.schema())
            .unwrap()
            .read(&block)
            .unwrap();
        let bytes = memory_size(&columns(&decoded.batch));
        assert!(bytes >= 16 * 8192 * 8 && bytes < 2 * block.len(), "{bytes}");
    }
}
