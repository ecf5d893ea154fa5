//! A 64-bit hash that tells rows apart: by the bits of floats, by nulls, by the shape of nested
//! values. It is the same in every process and for every slicing of the same values.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, GenericByteArray, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;

use crate::{Result, ShuffleError};

const START: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
const NULL: u64 = 0xa076_1d64_78bd_642f;

/// The hashes of all rows of `batch`, into `hashes`, which is cleared first.
pub(super) fn hash_rows(batch: &RecordBatch, hashes: &mut Vec<u64>) -> Result<()> {
    hashes.clear();
    hashes.resize(batch.num_rows(), START);
    for column in batch.columns() {
        cells(column)?.mix_all(hashes);
    }
    for hash in hashes {
        *hash = finish(*hash);
    }
    Ok(())
}

fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value) * u128::from(FACTOR);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = product.to_le_bytes();
    let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let high = u64::from_le_bytes([i, j, k, l, m, n, o, p]);
    (low ^ high).wrapping_add(START)
}

fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = hash;
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(tail) {
            *to = *from;
        }
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}

fn finish(hash: u64) -> u64 {
    let mut hash = hash ^ (hash >> 33);
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

trait Cells {
    fn mix_valid(&self, row: usize, hash: u64) -> u64;

    fn nulls(&self) -> Option<&NullBuffer>;

    fn mix(&self, row: usize, hash: u64) -> u64 {
        if self.nulls().is_some_and(|nulls| nulls.is_null(row)) {
            mix(hash, NULL)
        } else {
            self.mix_valid(row, hash)
        }
    }

    /// One dynamic call for a column instead of one for each row.
    fn mix_all(&self, hashes: &mut [u64]) {
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = self.mix(row, *hash);
        }
    }
}

type DynCells<'a> = Box<dyn Cells + 'a>;

fn cells(array: &dyn Array) -> Result<DynCells<'_>> {
    let nulls = array.nulls();
    Ok(match array.data_type() {
        DataType::Null => Box::new(Nothing),
        DataType::Boolean => Box::new(Booleans(array.as_boolean())),
        DataType::Binary => Box::new(Bytes(array.as_binary::<i32>())),
        DataType::LargeBinary => Box::new(Bytes(array.as_binary::<i64>())),
        DataType::Utf8 => Box::new(Bytes(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Bytes(array.as_string::<i64>())),
        DataType::FixedSizeBinary(width) => fixed(array, usize::try_from(*width).unwrap_or(0)),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            let fields = columns.map(|column| cells(column)).collect::<Result<_>>()?;
            Box::new(Structs { fields, nulls })
        }
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            lists(array.value_offsets(), nulls, &[array.values()])?
        }
        DataType::LargeList(_) => {
            let array = array.as_list::<i64>();
            lists(array.value_offsets(), nulls, &[array.values()])?
        }
        DataType::FixedSizeList(_, size) => Box::new(FixedLists {
            size: usize::try_from(*size).unwrap_or(0),
            values: cells(array.as_fixed_size_list().values())?,
            nulls,
        }),
        DataType::Map(_, _) => {
            let array = array.as_map();
            let parts: [&dyn Array; 2] = [array.keys(), array.values()];
            lists(array.value_offsets(), nulls, &parts)?
        }
        other => match other.primitive_width() {
            Some(width) => fixed(array, width),
            None => {
                let message = format!("round robin of a column of type {other}");
                return Err(ShuffleError::Unsupported(message));
            }
        },
    })
}

struct Nothing;

impl Cells for Nothing {
    fn mix_valid(&self, _row: usize, hash: u64) -> u64 {
        mix(hash, NULL)
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        None
    }
}

struct Booleans<'a>(&'a arrow_array::BooleanArray);

impl Cells for Booleans<'_> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        mix(hash, u64::from(self.0.value(row)))
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.0.nulls()
    }
}

/// Values of one width, by their bytes.
struct Fixed<'a, const WIDTH: usize> {
    /// Starts at the first value of the array.
    values: Buffer,
    nulls: Option<&'a NullBuffer>,
    width: usize,
}

fn fixed(array: &dyn Array, width: usize) -> DynCells<'_> {
    let data = array.to_data();
    let values = match data.buffers().first() {
        Some(values) if data.offset() * width <= values.len() => {
            values.slice(data.offset() * width)
        }
        _ => Buffer::default(),
    };
    let nulls = array.nulls();
    match width {
        4 => Box::new(Fixed::<4> {
            values,
            nulls,
            width,
        }),
        8 => Box::new(Fixed::<8> {
            values,
            nulls,
            width,
        }),
        16 => Box::new(Fixed::<16> {
            values,
            nulls,
            width,
        }),
        _ => Box::new(Fixed::<0> {
            values,
            nulls,
            width,
        }),
    }
}

impl<const WIDTH: usize> Cells for Fixed<'_, WIDTH> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        // A width known to the compiler makes this a few instructions.
        let width = if WIDTH == 0 { self.width } else { WIDTH };
        let bytes = self.values.get(row * width..(row + 1) * width);
        mix_bytes(hash, bytes.unwrap_or_default())
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls
    }
}

struct Bytes<'a, T: ByteArrayType>(&'a GenericByteArray<T>);

impl<T: ByteArrayType> Cells for Bytes<'_, T> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        let value: &[u8] = self.0.value(row).as_ref();
        mix_bytes(mix(hash, wide(value.len())), value)
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.0.nulls()
    }
}

struct Structs<'a> {
    fields: Vec<DynCells<'a>>,
    nulls: Option<&'a NullBuffer>,
}

impl Cells for Structs<'_> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        let fields = self.fields.iter();
        fields.fold(mix(hash, 1), |hash, field| field.mix(row, hash))
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls
    }
}

/// Lists, and maps as lists whose elements have two parts.
struct Lists<'a, O> {
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    parts: Vec<DynCells<'a>>,
}

fn lists<'a, O: OffsetSizeTrait>(
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    parts: &[&'a dyn Array],
) -> Result<DynCells<'a>> {
    let parts = parts
        .iter()
        .map(|part| cells(*part))
        .collect::<Result<_>>()?;
    Ok(Box::new(Lists {
        offsets,
        nulls,
        parts,
    }))
}

impl<O: OffsetSizeTrait> Cells for Lists<'_, O> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        let start = self.offsets.get(row).map_or(0, |start| start.as_usize());
        let end = self
            .offsets
            .get(row + 1)
            .map_or(start, |end| end.as_usize());
        (start..end).fold(mix(hash, wide(end - start)), |hash, element| {
            let parts = self.parts.iter();
            parts.fold(hash, |hash, part| part.mix(element, hash))
        })
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls
    }
}

struct FixedLists<'a> {
    size: usize,
    values: DynCells<'a>,
    nulls: Option<&'a NullBuffer>,
}

impl Cells for FixedLists<'_> {
    fn mix_valid(&self, row: usize, hash: u64) -> u64 {
        let elements = row * self.size..(row + 1) * self.size;
        elements.fold(hash, |hash, element| self.values.mix(element, hash))
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls
    }
}
